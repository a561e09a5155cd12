"""Random numbers: each device has a stream of its own, and a seed gives it again."""

from __future__ import annotations

from ._program import in_group

# fmt: off
# A program's name and the opening of its text share a line.

program = in_group("random")

PROGRAMS = [
    program("manual_seed_repeats", """
        draws = []
        for _ in range(2):
            torch.manual_seed(7)
            draws.append([torch.rand(3, device="cuda"), torch.randn(2, 2, device="cuda")])
        print([torch.equal(a, b) for a, b in zip(*draws)], torch.equal(*draws[0][1]))
    """),
    program("cuda_manual_seed_repeats", """
        draws = []
        for seed in (3, 3, 4):
            torch.cuda.manual_seed(seed)
            draws.append(torch.rand(4, device="cuda"))
        print(torch.equal(draws[0], draws[1]), torch.equal(draws[0], draws[2]))
    """),
    program("consecutive_draws_differ", """
        torch.manual_seed(0)
        print(torch.equal(torch.rand(4, device="cuda"), torch.rand(4, device="cuda")))
    """),
    program("host_draws_undisturbed", """
        torch.manual_seed(0)
        want = [torch.rand(2) for _ in range(3)]
        torch.manual_seed(0)
        got = []
        for _ in range(3):
            got.append(torch.rand(2))
            torch.rand(100, device="cuda")
            torch.nn.functional.dropout(torch.ones(10, device="cuda"))
        print([torch.equal(a, b) for a, b in zip(want, got)])
    """),
    program("device_draws_undisturbed_by_host", """
        torch.manual_seed(0)
        want = torch.rand(3, device="cuda")
        torch.manual_seed(0)
        torch.rand(100)
        print(torch.equal(torch.rand(3, device="cuda"), want))
    """),
    program("same_seed_differs_from_cpu", """
        torch.manual_seed(0)
        a = torch.rand(8)
        torch.manual_seed(0)
        print(torch.equal(torch.rand(8, device="cuda").cpu(), a))
    """),
    program("module_weights_made_on_either_device", """
        weights = []
        for device in ("cpu", "cpu", "cuda", "cuda"):
            torch.manual_seed(0)
            weights.append(torch.nn.Linear(4, 4, device=device).weight.detach().cpu())
        print(torch.equal(weights[0], weights[1]), torch.equal(weights[2], weights[3]))
        print(torch.equal(weights[0], weights[2]))
    """),
    program("rng_state_save_and_restore", """
        torch.rand(3, device="cuda")
        state = torch.cuda.get_rng_state()
        a = torch.rand(3, device="cuda")
        torch.cuda.set_rng_state(state)
        print(torch.equal(torch.rand(3, device="cuda"), a))
        print(state.device, state.dtype, state.dim())
    """),
    program("rng_state_all", """
        states = torch.cuda.get_rng_state_all()
        a = torch.rand(3, device="cuda")
        torch.cuda.set_rng_state_all(states)
        print(torch.equal(torch.rand(3, device="cuda"), a))
        print(len(states) == torch.cuda.device_count())
    """),
    program("fork_rng", """
        torch.manual_seed(0)
        with torch.random.fork_rng(devices=[0]):
            inside = torch.rand(2, device="cuda")
        outside = torch.rand(2, device="cuda")
        print(torch.equal(inside, outside))
        with torch.random.fork_rng(devices=[]):
            torch.rand(2, device="cuda")
        torch.manual_seed(0)
        torch.rand(2, device="cuda")
        print(torch.equal(torch.rand(2, device="cuda"), outside))
    """),
    program("initial_seed", """
        torch.manual_seed(11)
        print(torch.initial_seed(), torch.cuda.initial_seed())
        torch.cuda.manual_seed_all(12)
        print(torch.initial_seed(), torch.cuda.initial_seed())
    """),
    program("seed_before_first_use", """
        torch.manual_seed(5)
        print(torch.cuda.is_initialized())
        a = torch.rand(2, device="cuda")
        torch.manual_seed(5)
        print(torch.cuda.is_initialized(), torch.equal(torch.rand(2, device="cuda"), a))
    """),
    program("generator_repeats", """
        generator = torch.Generator(device="cuda").manual_seed(1)
        a = torch.rand(3, device="cuda", generator=generator)
        generator.manual_seed(1)
        b = torch.rand(3, device="cuda", generator=generator)
        print(torch.equal(a, b), generator.device, generator.initial_seed())
        print(torch.equal(torch.rand(3, device="cuda", generator=generator), b))
    """),
    program("generator_of_in_place_draws", """
        draws = []
        for seed in (1, 1, 2):
            g = torch.Generator(device="cuda").manual_seed(seed)
            x = torch.empty(5, device="cuda")
            draws.append(torch.cat([x.uniform_(generator=g), x.normal_(generator=g)]))
        print(torch.equal(draws[0], draws[1]), torch.equal(draws[0], draws[2]))
    """),
    program("generator_leaves_default_alone", """
        torch.manual_seed(0)
        want = torch.rand(2, device="cuda")
        torch.manual_seed(0)
        torch.rand(50, device="cuda", generator=torch.Generator("cuda").manual_seed(9))
        print(torch.equal(torch.rand(2, device="cuda"), want))
    """),
    program("generator_equals_seeded_default", """
        torch.manual_seed(3)
        a = torch.randn(4, device="cuda")
        b = torch.randn(4, device="cuda", generator=torch.Generator("cuda").manual_seed(3))
        print(torch.equal(a, b))
    """),
    program("generator_state", """
        generator = torch.Generator("cuda").manual_seed(2)
        state = generator.get_state()
        a = torch.randn(2, device="cuda", generator=generator)
        generator.set_state(state)
        print(torch.equal(torch.randn(2, device="cuda", generator=generator), a), state.device)
        twin = generator.clone_state()
        a = torch.rand(2, device="cuda", generator=generator)
        print(torch.equal(torch.rand(2, device="cuda", generator=twin), a), type(twin).__name__)
    """),
    program("default_generators", """
        generator = torch.cuda.default_generators
        torch.cuda.init()
        print(torch.cuda.default_generators[0].device, type(generator).__name__)
        torch.cuda.default_generators[0].manual_seed(4)
        a = torch.rand(2, device="cuda")
        torch.cuda.manual_seed(4)
        print(torch.equal(torch.rand(2, device="cuda"), a))
    """),
    program("dropout_train_and_eval", """
        torch.manual_seed(0)
        drop, x = torch.nn.Dropout(0.5), torch.ones(10000, device="cuda")
        y = drop(x)
        print(sorted(y.unique().tolist()), 0.45 < (y == 0).float().mean().item() < 0.55)
        drop.eval()
        print(torch.equal(drop(x), x), drop(x) is x)
        print(torch.nn.functional.dropout(x, 0.5, training=False) is x)
    """),
    program("dropout_repeats_with_seed", """
        x, masks = torch.ones(100, device="cuda"), []
        for _ in range(2):
            torch.manual_seed(1)
            masks.append(torch.nn.functional.dropout(x, 0.3))
        print(torch.equal(*masks), torch.equal(torch.nn.functional.dropout(x, 0.3), masks[0]))
    """),
    program("dropout_gradient_uses_its_mask", """
        x = torch.ones(1000, device="cuda", requires_grad=True)
        y = torch.nn.functional.dropout(x, 0.5)
        y.sum().backward()
        print(torch.equal(x.grad, y.detach()))
    """),
    program("dropout_extremes", """
        x = torch.ones(4, device="cuda")
        drop = torch.nn.functional.dropout
        print(drop(x, 0.0), drop(x, 1.0), torch.nn.functional.dropout2d(x.view(1, 4, 1, 1)).shape)
        drop(x, 1.5)
    """),
    program("randperm_is_a_permutation", """
        torch.manual_seed(0)
        a = torch.randperm(1000, device="cuda")
        torch.manual_seed(0)
        print(torch.equal(torch.randperm(1000, device="cuda"), a), a.dtype, a.device)
        print(torch.equal(a.sort().values, torch.arange(1000, device="cuda")), a.is_cuda)
    """),
    program("randint_range", """
        torch.manual_seed(0)
        x = torch.randint(3, 7, (1000,), device="cuda")
        print(x.min().item(), x.max().item(), x.dtype, x.unique().tolist())
        print(torch.randint(2, (3, 2), device="cuda", dtype=torch.uint8).dtype)
    """),
    program("randint_empty_range", 'torch.randint(5, 5, (2,), device="cuda")'),
    program("uniform_range", """
        torch.manual_seed(0)
        x = torch.rand(10000, device="cuda")
        print((x >= 0).all().item(), (x < 1).all().item(), 0.45 < x.mean().item() < 0.55)
        y = torch.empty(1000, device="cuda").uniform_(-2, 2)
        print(y.min().item() >= -2, y.max().item() <= 2, y.min().item() < -1.5)
    """),
    program("normal_moments", """
        torch.manual_seed(0)
        x = torch.empty(20000, device="cuda").normal_(3.0, 2.0)
        print(abs(x.mean().item() - 3) < 0.1, abs(x.std().item() - 2) < 0.1)
        y = torch.normal(torch.zeros(3, device="cuda"), torch.ones(3, device="cuda"))
        print(y.shape, y.device, torch.normal(0.0, 1.0, (2,), device="cuda").device)
        torch.normal(torch.zeros(2, device="cuda"), -torch.ones(2, device="cuda"))
    """),
    program("multinomial", """
        torch.manual_seed(0)
        weights = torch.tensor([0.0, 1.0, 0.0, 3.0], device="cuda")
        draws = torch.multinomial(weights, 1000, replacement=True)
        print(sorted(draws.unique().tolist()), 0.65 < (draws == 3).float().mean().item() < 0.85)
        print(sorted(torch.multinomial(weights, 2).tolist()), draws.dtype)
        torch.multinomial(weights, 5)
    """),
    program("bernoulli", """
        torch.manual_seed(0)
        x = torch.bernoulli(torch.full((10000,), 0.25, device="cuda"))
        print(x.unique().tolist(), 0.22 < x.mean().item() < 0.28, x.dtype)
        print(torch.bernoulli(torch.tensor([0.0, 1.0], device="cuda")).tolist())
        print(torch.empty(1000, device="cuda").bernoulli_(0.5).unique().tolist())
    """),
    program("other_distributions", """
        torch.manual_seed(0)
        x = torch.empty(5000, device="cuda")
        print(x.exponential_(2.0).min().item() >= 0, abs(x.mean().item() - 0.5) < 0.05)
        print(x.geometric_(0.5).min().item() >= 1, x.log_normal_().min().item() > 0)
        print(torch.poisson(torch.full((1000,), 4.0, device="cuda")).min().item() >= 0)
        print(x.random_(0, 5).max().item() == 4, x.cauchy_().shape)
    """),
    program("distributions_sample", """
        torch.manual_seed(0)
        normal = torch.distributions.Normal(torch.zeros(3, device="cuda"), 1.0)
        draws = normal.sample((1000,))
        print(draws.shape, draws.device, draws.mean().abs().item() < 0.1)
        categorical = torch.distributions.Categorical(torch.tensor([0.0, 1.0], device="cuda"))
        print(categorical.sample((3,)), categorical.probs)
        print(categorical.log_prob(torch.tensor(1, device="cuda")).abs().item() < 1e-4)
    """),
    program("rand_like_and_inits_repeat", """
        x, draws = torch.zeros(3, 3, device="cuda"), []
        for _ in range(2):
            torch.manual_seed(2)
            draws.append([torch.randn_like(x)])
            for init in (torch.nn.init.xavier_uniform_, torch.nn.init.kaiming_normal_,
                         torch.nn.init.orthogonal_, torch.nn.init.trunc_normal_):
                draws[-1].append(init(x.clone()))
        print([torch.allclose(a, b) for a, b in zip(*draws)])
    """),
    program("random_split_and_loader_repeat", """
        orders = []
        for _ in range(2):
            torch.manual_seed(0)
            torch.rand(10, device="cuda")
            loader = torch.utils.data.DataLoader(list(range(8)), shuffle=True, batch_size=4)
            orders.append([batch.tolist() for batch in loader])
        print(orders[0] == orders[1], sorted(orders[0][0] + orders[0][1]))
    """),
    program("seed_on_another_stream", """
        torch.manual_seed(0)
        a = torch.rand(3, device="cuda")
        torch.manual_seed(0)
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            b = torch.rand(3, device="cuda")
        stream.synchronize()
        print(torch.equal(a, b))
    """),
    program("seeds_per_device", """
        torch.manual_seed(0)
        a, b = torch.rand(4, device="cuda:0"), torch.rand(4, device="cuda:1")
        print(torch.equal(a.cpu(), b.cpu()))
        with torch.cuda.device(1):
            torch.cuda.manual_seed(5)
        c, d = torch.rand(4, device="cuda:0"), torch.rand(4, device="cuda:1")
        torch.cuda.manual_seed(5)
        e = torch.rand(4, device="cuda:0")
        print(torch.equal(c.cpu(), d.cpu()), torch.equal(e.cpu(), d.cpu()))
    """, 2),
    program("states_per_device", """
        torch.manual_seed(0)
        state = torch.cuda.get_rng_state("cuda:1")
        torch.rand(3, device="cuda:0")
        print(torch.equal(torch.cuda.get_rng_state("cuda:1"), state))
        torch.rand(3, device="cuda:1")
        print(torch.equal(torch.cuda.get_rng_state(1), state))
        print(len(torch.cuda.get_rng_state_all()) >= 2)
    """, 2),
    program("generator_of_other_gpu", """
        torch.rand(2, device="cuda:0", generator=torch.Generator("cuda:1"))
    """, 2),
]
