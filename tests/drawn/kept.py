"""Networks that failed once, each reduced to the smallest: every run repeats them."""

KEPT = (
    "Network(blocks=(Block(how='alias'),))",
    "Network(blocks=(Block(how='twice'), Block()))",
    "Network(blocks=(Block((Unit(), Unit()), how='shared'),))",
    "Network(blocks=(Block(how='hyper'), Block()))",
    "Network(blocks=(Block((Unit((Term('scan'),)),)),))",
    "Network(blocks=(Block((Unit((Term('cumsum'),)),)),))",
    "Network(blocks=(Block((Unit((Term('doubling'),)),)),))",
    "Network(blocks=(Block((Unit((Term('mlp raw'),)),)),))",
    "Network(blocks=(Block((Unit((Term('attend mha weights'),)),)),))",
    "Network(blocks=(Block((Unit((Term('attend sink'),)), Unit((Term('attend hand'),)))),))",
    "Network(blocks=(Block((Unit((Term('attend exp'),)), Unit((Term('attend hand'),)))),))",
    "Network(blocks=(Block((Unit((Term('attend latents'),)),)),), columns=True)",
    "Network(blocks=(Block((Unit((Term('attend mixed keys'),)),)),))",
    "Network(blocks=(Block((Unit((Term(scale='dropout'),)),)),))",
    "Network(blocks=(Block((Unit(norm='post rms'),)), Block((Unit(norm='post rms'),))))",
    "Network(blocks=(Block((Unit(norm='post batch'),)), Block((Unit(norm='post batch'),))))",
    "Network(stream='nchw', blocks=(Block((Unit(norm='post layer'),)),))",
    "Network(stream='nhwc', blocks=(Block((Unit(norm='post instance'),)),))",
    "Network(size=32, blocks=(Block(), Between('mixer'), Block((Unit((Term('attend hand'),)),))))",
    "Network(stem='f.unfold', stream='nchw', blocks=(Block((Unit((Term('pool'),)),)),))",
    "Network(stem='unfold')",
    "Network(front='mean')",
    "Network(front='empty')",
    "Network(front='class', blocks=(Block((Unit(inside='sequence'),)),))",
    "Network(stream='nchw', blocks=(Block((Unit(norm='pre batch'),)), "
    "Block((Unit((Term('conv 1'),), norm='pre batch', shortcut='long'),))))",
    "Network(size=32, stream='nchw', blocks=(Block((Unit((Term('conv 1'), Term('bottleneck')), "
    "'x = b + (x + a)', norm='post batch', shortcut='pool', stride=2),)),))",
    "Network(blocks=(Block((Unit((Term('mixer'),), 'x = a + 0.9 * x'), "
    "Unit((Term('attend hand'),)))),))",
    "Network(blocks=(Block((Unit((Term('attend hand'), Term()), 'x = (x + a) + b'),)),))",
    "Network(blocks=(Block((Unit((Term('attend hand'), Term()), 'x = b + (x + a)'),)),))",
    "Network(blocks=(Block((Unit((Term('attend hand'), Term()), 'x = (x + a) - b'),)),))",
    "Network(blocks=(Block((Unit(add='x = torch.add(x, a, alpha=0.5)'),)), Block()))",
    "Network(blocks=(Block((Unit(add='x = x - a'),)), Block()))",
    "Network(blocks=(Block((Unit(add='x = torch.lerp(x, a, 0.4)'),)), Block()))",
    "Network(blocks=(Block((Unit(add='x = torch.stack([x, a]).mean(0)'),)), Block()))",
    "Network(blocks=(Block((Unit(add='x = torch.cat([x[None], a[None]]).sum(0)'),)), Block()))",
    "Network(stem='shifted', classes=6, seed=1051, head='query', "
    "blocks=(Block((Unit(add='x = torch.cat([x[None], a[None]]).sum(0)'),)),))",
    "Network(blocks=(Block((Unit(add='x = (x.double() + a.double()).float()', act='relu'),)),))",
    "Network(blocks=(Block((Unit((Term('fft'), Term('attend sink')), 'x = a + (b + x)'),)),))",
    "Network(blocks=(Block((Unit(norm='post batch'),), how='twice'),))",
    "Network(blocks=(Block((Unit(add='x = torch.where(m, x + a, x)'),)), Block()))",
    "Network(blocks=(Block((Unit(add='x[:] += a'),)), Block()))",
    "Network(blocks=(Block((Unit((Term('fft'), Term('attend hand')), 'x = (x + a) - b'),)),))",
    "Network(stream='nchw', blocks=(Block(), "
    "Block((Unit(add='x = torch.stack([x, a]).sum(0)', shortcut='conv'),))))",
    "Network(stream='nchw', blocks=(Block((Unit(act='relu'),)),))",
    "Network(front='class', blocks=(Block((Unit(add='x[:, 1:] += a[:, 1:]'),)), Block()))",
    "Network(blocks=(Block((Unit(add='x = (1 - g) * x + g * a'),)), Block()))",
    "Network(seed=739945932, blocks=(Block((Unit((Term('pool'),)),), how='residual'),))",
    "Network(front='class', blocks=(Between('mixer'), "
    "Block((Unit((Term('attend hand'), Term('conv 1')), 'x = (x + a) + b'),), how='loop')))",
    "Network(blocks=(Block((Unit((Term('attend mixed keys'),)),) * 2, how='shared'),))",
    "Network(seed=71000491, stream='nchw', "
    "blocks=(Block((Unit((Term('pool'),), shortcut='conv'),)),))",
    "Network(seed=72000736, stream='nchw', "
    "blocks=(Block((Unit((Term('pool'),), shortcut='pool conv'),)),))",
    "Network(seed=72000524, blocks=(Block((Unit((Term('attend mha'),), norm='post instance'),)),))",
    "Network(blocks=(Between('mixer'), Block((Unit((Term('fft'),)), "
    "Unit((Term('attend rows'), Term('pool')), 'x = x + (a + b)')))))",
    "Network(blocks=(Block((Unit((Term('fft'), Term('pool')), 'x = (x + b) + a'),)),))",
    "Network(blocks=(Block(), Between('mixer'), "
    "Block((Unit((Term('mlp depthwise'),)), Unit((Term('attend hand'),))))))",
    "Network(size=32, blocks=(Block(), Between('prune'), "
    "Block((Unit((Term('pointwise'),)), Unit((Term('attend hand'),))))))",
    "Network(size=32, blocks=(Block(), Between('prune'), "
    "Block((Unit((Term('conv'),)), Unit((Term('attend hand'),))))))",
    "Network(blocks=(Block(), Between('mixer'), Between('convs'), "
    "Block((Unit((Term('attend hand'),)),))))",
    "Network(blocks=(Block((Unit((Term('attend mha'),)),), how='twice'),))",
    "Network(size=32, blocks=(Block((Unit((Term('attend rotary'),), norm='none'),), how='loop'), "
    "Block((Unit((Term('attend permuted'),)),))), columns=True)",
    "Network(blocks=(Block((Unit(add='x = torch._foreach_add([x], [a])[0]'),)), Block()))",
    "Network(size=32, blocks=(Block(), Between('avg pool'), "
    "Block((Unit((Term('fft'),), 'x = torch._foreach_add([x], [a])[0]'),)), Block()))",
    "Network(size=32, stream='nchw', blocks=(Block((Unit((Term('conv'),), 'x[:] += a', "
    "norm='pre batch', shortcut='long', stride=2),)), Block()))",
    "Network(size=32, stream='nchw', blocks=(Block((Unit((Term('conv'),), 'x[:] += a', "
    "norm='pre batch', shortcut='conv', stride=2),)), Block()))",
    "Network(stream='nchw', blocks=(Block((Unit((Term('conv'),), "
    "'x = torch._foreach_add([x], [a])[0]', norm='pre batch', shortcut='long'),)), Block()))",
    "Network(blocks=(Block((Unit((Term('pool'),), 'x = g * a + x'),)),))",
    "Network(blocks=(Block((Unit((Term('attend sigmoid'),)), Unit((Term('doubling'),))), "
    "how='residual'),))",
    "Network(width=16, blocks=(Block((Unit((Term('attend float64'),), 'x = torch.addmm("
    "x.flatten(0, 1), a.flatten(0, 1), W).unflatten(0, x.shape[:2])'),)), Block()))",
    "Network(seed=44, blocks=(Block((Unit((Term('pool'),), add='x = torch.addmm(x.flatten(0, 1), "
    "a.flatten(0, 1), W).unflatten(0, x.shape[:2])'),)),))",
    "Network(seed=540074, blocks=(Block(), Block((Unit((Term(), Term()), "
    "add='x = x.add_(a).add_(b)'),))), head='flat', exits=True)",
    "Network(seed=540343, blocks=(Block(), Block((Unit((Term(), Term()), "
    "add='x = torch.add(x + a, b, alpha=0.5)'),))), head='hidden', exits=True)",
    "Network(seed=540625, blocks=(Block(), Block((Unit(add='x = torch.nan_to_num(x) + a'),))), "
    "exits=True)",
    "Network(seed=540726, blocks=(Block(), Block((Unit(norm='post layer'),))), exits=True)",
    "Network(seed=540741, front='mean', blocks=(Between('mixer'), Block()), exits=True)",
    "Network(seed=541069, blocks=(Between('mixer'), Block((Unit((Term('attend talking'), Term(), "
    "Term('conv 1')), add='x = sum([x, a, b, c])'),))))",
    "Network(seed=540265, stream='nchw', blocks=(Block((Unit((Term('conv'),), shortcut='pad', "
    "stride=2),)), Block((Unit((Term('attend pooled'),)),))))",
    "Network(seed=541094, stream='nchw', blocks=(Between('mixer'), Block((Unit((Term('fft'),), "
    "shortcut='pool conv'),))))",
    "Network(seed=541183, stream='nchw', blocks=(Block((Unit((Term(), Term()), "
    "add='x = torch.stack([x, a, b]).sum(0)'),)), Block((Unit(shortcut='pool conv'),))), "
    "exits=True)",
)
