"""The tables of claims, and of how well measured curves agree with published ones."""

from vitscope.files.tables import Columns, Table

COUNTED: Columns = {
    "figure": ("string", "figure that the claim is about"),
    "model": ("string", "model, as the study names it"),
    "versus": ("string", "model that it is compared with; null where the claim is of one"),
    "snapshot": ("string", "moment of training; null where the figure is about none"),
    "claim": ("string", "name of the claim"),
    "statement": ("string", "the claim in words"),
    "source": ("string", "where it is made"),
    "measure": ("string", "what the values are: the share of what, or which difference"),
    "percent": ("bool", "whether the values are shares, shown in percent"),
    "holds_above": ("float64", "the claim holds where the value is above this"),
    "published_series": ("string", "published curve, or curves, of the figure; or null"),
    "published_count": ("int32", "on the published points: how many do as claimed"),
    "published_total": ("int32", "of how many; null where nothing is counted"),
    "published_value": ("float64", "their share, or the value; null if unknown"),
    "published_low": ("float64", "lower end of its 95 % interval over images, if it is known"),
    "published_high": ("float64", "upper end of its 95 % interval over images, if it is known"),
    "published_verdict": (
        "string",
        "what is published of this network: yes, no or open; null where it has no interval, as "
        "what is read off a curve",
    ),
    "measured_count": ("int32", "as measured: how many do as claimed"),
    "measured_total": ("int32", "of how many; null where nothing is counted"),
    "measured_value": ("float64", "their share, or the value; null if undefined"),
    "measured_low": (
        "float64",
        "lower end of the 95 % interval of measured_value over images; of a trend, of its range",
    ),
    "measured_high": ("float64", "upper end of the same"),
    "measured_verdict": (
        "string",
        "of this network: yes, no, or open where the interval contains holds_above; yes or no, "
        "without an interval, where there is none; null where measured_value is",
    ),
    "certain": ("int32", "how many of measured_total have a sign that is certain over images"),
    "margin": (
        "float64",
        "what trainings are compared by: by how much cases are in favour, on average (of positive "
        "values, the mean logarithm of a ratio), or Fisher's z of a rank correlation; null where "
        "that is measured_value",
    ),
    "p": ("float64", "chance of the other side of holds_above over images; null if untested"),
    "batches": ("int32", "batches that the value is of; null where images are the units"),
    "fewest_batches": ("int32", "the fewest batches that can decide; null as batches"),
    "doubt": (
        "string",
        "accuracy of chance, by its interval over test images; accuracy not measured, where none "
        "of the study's tables `fit` and `corruption_error` has the model; else null",
    ),
}
CLAIMS = Table(
    "claims",
    {
        **COUNTED,
        "recipe": (
            "string",
            "the first models of the recipe, or of the two; null with fewer than three trainings",
        ),
        "trainings": ("int32", "networks of the recipe that were trained with other seeds"),
        "values": ("list of float64", "measured_count of each, or measured_value; null of one"),
        "recipe_low": (
            "float64",
            "lower end of Student's 95 % interval over trainings, of margin or measured_value",
        ),
        "recipe_high": (
            "float64",
            "upper end of Student's 95 % interval over trainings, of margin or measured_value",
        ),
        "recipe_verdict": (
            "string",
            "of the recipe: yes or no if the interval and all counts are on one side, open, or one "
            "training",
        ),
        "recipe_p": ("float64", "chance of the other side over trainings, by Student's t"),
        "q": (
            "float64",
            "rate of false verdicts among the rows of the study that are as sure (Benjamini and "
            "Hochberg): of a recipe by recipe_p among recipes, of one network by p among networks",
        ),
        "holds": (
            "string",
            "of the recipe: yes, no or open; with fewer than three trainings what is known of this "
            "network: yes, in this network; no, in this network; open; yes, without an interval; "
            "no, without an interval; null where measured_value is",
        ),
        "verdict": (
            "string",
            "the same in words, with how many of what is counted do as claimed: all, most or so "
            "many; then q, where more than 5 of 100 such verdicts are false, and doubt",
        ),
    },
)

AGREEMENT = Table(
    "agreement",
    {
        "figure": ("string", "figure that shows both curves"),
        "model": ("string", "model, as the study names it"),
        "published_series": ("string", "published curve, or curves, of the same checkpoint"),
        "published_points": ("int32", "points that are published"),
        "measured_points": ("int32", "points that are measured"),
        "compared_points": ("int32", "published points at which both curves are known"),
        "sign_share": (
            "float64",
            "share of changes that have the published sign: from point to point or, of curves over "
            "frequency, from cut point to cut point",
        ),
        "change_correlation": ("float64", "Spearman's rank correlation of these changes"),
        "error": ("float64", "root mean square difference, in unit"),
        "sign_share_of_line": ("float64", "the best sign_share of any straight line"),
        "error_of_line": ("float64", "the least error of any straight line"),
        "sign_share_of_other": (
            "float64",
            "the best sign_share of the published curve of another network; null if there is none",
        ),
        "change_correlation_of_other": ("float64", "the same for change_correlation"),
        "error_of_other": ("float64", "the least error of such a curve"),
        "uncertainty": (
            "float64",
            "standard deviation of the measured values over resamples of the images, in unit; null "
            "if it is not known",
        ),
        "unit": ("string", "decades, of a curve of ratios; else the column that is compared"),
    },
)
