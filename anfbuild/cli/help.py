"""What `anfbuild --help` says: enough to start without another page."""

HELP = """\
anfbuild is Make for on-device AI on Snapdragon: a recipe in, a verified package for the NPU and a report out.

usage: anfbuild +recipe=NAME [KEY=VALUE ...] [options]

  anfbuild +recipe=ocr_detect                  build recipes/ocr_detect.yaml, yours or anfbuild's
  anfbuild +recipe=ocr_detect                  again: steps that nothing changed for come from the cache
  anfbuild +recipe=ocr_detect --cfg job        only print the whole recipe, with every default

what to build: overrides, as in Hydra
  KEY=VALUE                set a value            dataset.samples=64  'model.inputs.x.shape=[1,3,640,640]'
  GROUP=CHOICE             choose a file of conf/GROUP/            target=sm8650  quantization=a16w8
  +KEY=VALUE  ~KEY         add, remove            '+gates.latency_ms={max: 20}'  ~gates.latency_ms
  goal=STEP                stop after a step      goal=quantize  goal=simulate
  groups: source dataset task quantization calibration target backend performance versions gates
  Your own recipes/ and conf/ in the working directory come before those of anfbuild.

many builds: -m, one for each combination
  anfbuild -m +recipe=ocr_detect quantization=int8,a16w8 calibration=mse,minmax
  anfbuild -m '+recipe=glob(*)'                every recipe
  anfbuild -m ... hydra/launcher=joblib        any Hydra launcher that is installed

before a build
  anfbuild lint MODEL [target=sm8650] [quantization=int8] [model.inputs.x.shape=[1,3,640,640]] [--sarif]
                                                   what will run where, why, and how to mend it: no weights, no data
  anfbuild lint +recipe=NAME [KEY=VALUE ...]       the same of a recipe's model;  anfbuild lint --rules: every rule
                                                   exit 3 where a build would stop or make something wrong

about a build
  anfbuild why STEP +recipe=NAME [KEY=VALUE ...]   would it run, and what changed since the nearest earlier build
  anfbuild reproduce +recipe=NAME [--keep]         build again from nothing, elsewhere, and compare every file

before there is a recipe
  anfbuild predict MODEL target=sm8650,sm8750 quantization=int8_per_channel,fp16 [--no-compile]
                                               latency on each chip, with its interval; weights may be missing
  anfbuild fit TARGET FILE [--models FOLDER] [--like TARGET] [--output FILE] [--overwrite]
                                               a chip's costs from a CSV of model, precision, latency_ms: 10 models do

the cache
  anfbuild cache status                        what the store holds, by recipe and by step
  anfbuild cache verify                        hash all of it; what is damaged is put aside and built again
  anfbuild cache gc [--max-size 20GB] [--older-than 30d] [--grace 1d] [--delete]
                                               what would go, the least recently used first; --delete removes it
  anfbuild cache pin +recipe=NAME [KEY=VALUE ...]         keep this build whatever is cleared;  unpin: no longer
  anfbuild cache push [+recipe=NAME]           send what the remote lacks
  anfbuild cache pull +recipe=NAME             bring what the remote has, build nothing

options
  -m, --multirun           sweep over the values given, separated by commas
  --cfg job                print the composed recipe as YAML and build nothing
  --accept                 write recipes/NAME.placement.csv: the nodes that may be off the HTP; others then exit 3
  --lock                   write recipes/NAME.lock.yaml: what this build was made of and what came out
  --locked                 refuse a build that leaves the lock; exit 3 where another thing comes out
  --junit FILE             steps and gates as JUnit XML
  --remote URL             share results: http(s)://, s3://, gs://, az:// or a folder; default $ANFBUILD_REMOTE
  --push                   also send what is built; default with ANFBUILD_REMOTE_WRITE=1
  --resume ID              with -m alone: go on with a sweep that was interrupted; ID or latest
  --json                   one JSON document on stdout, and nothing else there
  --debug                  tracebacks
  -sc, --shell-completion  tab completion:  eval "$(anfbuild -sc install=bash)"   (bash, zsh, fish)
  -h, --help    --version

where things are
  artifacts/builds/NAME/latest/                results.json, report.html, NAME.anf, placement.csv, encodings.json
  artifacts/sweeps/ID/                         results.json, results.csv, and a folder for each job
  artifacts/store/, or $ANFBUILD_CACHE         finished steps, shared by all builds: interrupted ones go on here

exit codes
  0 built, and no gate missed    1 a step failed    2 the recipe or the command line is wrong
  3 a gate or contract is missed 4 versions do not match         130 interrupted
A sweep exits with the highest code of its jobs.
"""
