"""What the tests stand on. No test lives here.

=========================  ====================================================================
oracle*                    what a problem with attributes means, in float64, and how sure that is
cases, parity*             problems with attributes and numbers, and the matrix of all of them
random_cases, strategies   the same drawn by a seed, or by hypothesis
fills, fill_tensors        arrays for them: clean, with one answer each, or on ties on purpose
plans                      chains that are composed, and what it takes to run a plan
rewriting                  the rewriter: exact meaning, near matches, planted mistakes
definitions                what other frameworks define, in rational arithmetic
both_ways                  each model that a test runs, node by node, too
onnx_graphs                random ONNX graphs, and what has to come of each beside onnxruntime
oracles, peers             other runtimes, asked live: their codes; names for every difference
onnx_operators             calls of ONNX's operators, what they mean, and models of one node
outside                    vectors of suites that others wrote
training_tool              what its configurations are compared for, and its own answers
calls, misreadings         calls of operators as values; what one may misunderstand in them
forms, pooled              layers whose forms mean the same; means with post-ops
chosen_values              selections of networks beside NumPy, for a child of any level
one_operation              an operation of networks, alone in one
group_cases                layers with weights in groups, and what they mean
attention_steps            an attention on a cache, called token after token
pools                      pools of every shape that ONNX has, beside onnxruntime and the text
standard                   every node case of the standard's backend tests, and what became of it
hostile, changed_json      right calls with something wrong about them, and a judge
foreign                    tensors of somebody else: DLPack, buffers, pretenders
fault*                     problems on which rows of the guard table show
guard_cases*               what each row must match, and what is right beside it
guard_borders              both sides of every border of every row
unguarded, planted         what the library computes when nobody stops it; faults put into it
sum_cases, pair_machine    sums that saturate, and the instruction that makes them
kernel_*, region_cases      what kernel models are compared with kernels on
isa, children, threads     levels to skip by, processes with a level of their own, threads at once
in_bf16                    layers in bf16, for processes that have it and that have not
fake_library               libraries that look like oneDNN or do not, made with a compiler
lives, frames              memory that stays behind; functions of Python that a call enters
bench_runs                 runs of bench that were made up
browser                    pages in chromium: narrow and wide, light and dark
terminal                   a terminal that there is not, and the bars that are drawn on it
=========================  ====================================================================
"""
