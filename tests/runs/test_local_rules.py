import os
from pathlib import Path

from tests.runs import warm

ROOT = Path(__file__).parents[2]
LIST = f"""
include: "{ROOT}/Snakefile"
for each in workflow.rules:
    print("local:", each.name, each.name in workflow._localrules)
rule nothing:
    localrule: True
"""


def test_what_computes_goes_to_a_cluster_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "Snakefile").write_text(LIST)
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    code, printed = warm.run("snakemake", ["--dry-run", "nothing"], tmp_path, environment)
    assert code == 0, printed
    local = dict(line.split()[1:] for line in printed.splitlines() if line.startswith("local: "))
    # A rule that inherits by `use rule` is not local unless it says so itself.
    assert {name for name, is_local in local.items() if is_local == "False"} == {
        *("augment_alike", "augment_images", "build_split", "convert_checkpoint"),
        *("convert_snapshot", "corrupt_images", "draw_blocks", "draw_video", "export_latents"),
        *("extract_kept_latents", "extract_latents", "measure_bundled", "measure_latents"),
        *("measure_line", "measure_loss", "measure_model", "measure_model_part", "measure_pass"),
        *("measure_shard", "measure_step", "predict", "train_model", "train_step"),
    }
