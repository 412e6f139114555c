//! What may be asked on the command line.

use clap::{Args, Parser, Subcommand, ValueEnum};
use iverson::pipeline::{self, Without};
use std::path::PathBuf;

const START: &str = "\
Start:
  Write this to dot.iv:
    def dot(x: [n]f64, y: [n]f64) -> f64 = sum i. x[i] * y[i]
  Then ask:
    iverson run dot.iv dot x=[1,2,3] y=[4,5,6]     its value: 32
    iverson grad dot.iv dot x=[1,2,3] y=[4,5,6]    its gradient
    iverson show dot.iv dot --derivative grad      the gradient as a program
    iverson cost dot.iv dot --derivative grad      what that costs, as a formula in n

More examples:
  iverson check model.iv
  iverson grad model.iv loss --data params.npz --wrt w,b --out gradient.npz
  iverson jvp model.iv f x=[1,2] --dir x=[1,0]
  iverson check-grad model.iv loss 'x=random(10)'
  iverson bench model.iv loss --derivative grad 'x=random(1000, 20)' --runs 50
  iverson build model.iv loss --derivative value-and-grad -o lib/model

Values:
  k=3  x=[1, 2.5, 3]  A=[[1, 2], [3, 4]]  b=true  t=(1.0, [2, 3])
  x=zeros(3)  x=ones(2, 3)  x=range(10)  x=random(1000)     random numbers in (-1, 1), the same each time
  x=@file.npy  x=@file.npz:name  x=@file.json  A=@matrix.mtx
  --data file.npz or --data file.json gives all parameters it has by name.

`iverson COMMAND --help` has the options of a command, with examples.";

const RUN: &str = "\
Examples:
  iverson run dot.iv dot x=[1,2,3] y=[4,5,6]
  iverson run model.iv predict --data params.npz 'X=random(10, 3)' --json
  iverson run model.iv predict --data params.npz X=@points.npy --out predictions.npz

Values:
  k=3  x=[1, 2.5, 3]  A=[[1, 2], [3, 4]]  b=true  t=(1.0, [2, 3])
  x=zeros(3)  x=ones(2, 3)  x=range(10)  x=random(1000)
  x=@file.npy  x=@file.npz:name  x=@file.json
  Shells take brackets for themselves: quote what has spaces, * or parentheses.";

#[derive(Parser)]
#[command(
    name = "iverson",
    version,
    about = "A differentiable array language and its compiler",
    after_help = START,
    arg_required_else_help = true
)]
pub struct Options {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Subcommand)]
pub enum Command {
    /// Report what is wrong with a program
    #[command(after_help = "Example:\n  iverson check model.iv\n\nThe exit code is 1 if there are errors; warnings alone leave it 0.")]
    Check {
        /// The program
        file: PathBuf,
    },
    /// Call a function
    #[command(after_help = RUN)]
    Run(Call),
    /// The gradient of a function with a scalar result
    #[command(after_help = "Example:\n  iverson grad dot.iv dot x=[1,2] y=[3,4] --wrt x\n\nWith --json: {\"x\": [3.0, 4.0]}")]
    Grad(Derivative),
    /// The value of a function and its gradient
    #[command(
        after_help = "Example:\n  iverson value-and-grad dot.iv dot x=[1,2] y=[3,4]\n\nWith --json: {\"value\": .., \"grad\": {\"x\": ..}}"
    )]
    ValueAndGrad(Derivative),
    /// All partial derivatives of a function's results: the axes of the result, then those of the parameter
    #[command(after_help = "Example:\n  iverson jacobian model.iv residuals --data in.npz --wrt w\n\n\
        With --json: {\"x\": ..}; of a function with several results a list of such objects\n\n\
        With --format csr or coo the matrices are sparse: rows are the result's numbers, columns the parameter's.\n\
        Entries are found from the program, and no dense matrix is made:\n  \
        iverson jacobian ba.iv residuals --data in.npz --format csr --stack --out jacobian.npz\n\
        SciPy's load_npz reads the file. With --json: {\"format\": \"csr\", \"shape\": .., \"indptr\": .., \"indices\": .., \"data\": ..}")]
    Jacobian(MatrixDerivative),
    /// The second derivatives of a function with a scalar result
    #[command(after_help = "Examples:\n  iverson hessian model.iv loss x=[1,2]\n  \
        iverson hessian model.iv loss --data in.npz --format csr --triangle lower --out hessian.mtx\n\n\
        With --json: {\"x\": {\"x\": ..}}; of a sparse matrix {\"format\": \"csr\", ..}")]
    Hessian(MatrixDerivative),
    /// The value and its change in a direction (forward mode)
    #[command(after_help = "Example:\n  iverson jvp f.iv f x=[1,2] --dir x=[1,0]\n\n\
        Directions may stand in the --data file as d_x; one that is left out is zero.\n\
        With --json: {\"value\": .., \"tangent\": ..}")]
    Jvp(Directional),
    /// The value, and a cotangent carried back to the parameters (reverse mode)
    #[command(after_help = "Example:\n  iverson vjp f.iv f x=[1,2] --seed [1,0,0]\n\n\
        The seed may stand in the --data file as `seed`; for a scalar result it is 1 if left out.\n\
        With --json: {\"value\": .., \"cotangents\": {\"x\": ..}}")]
    Vjp(Seeded),
    /// The Hessian times a direction, without the Hessian
    #[command(after_help = "Example:\n  iverson hvp f.iv f x=[1,2] --dir x=[1,0]\n\nWith --json: {\"x\": ..}")]
    Hvp(Directional),
    /// Print a function or its derivative after any pass of the compiler
    #[command(
        after_help = "Examples:\n  iverson show dot.iv dot --derivative grad\n  iverson show dot.iv dot --derivative vjp --after differentiate\n  \
        iverson show dot.iv dot --derivative grad --emit c"
    )]
    Show(Show),
    /// Count operations: as formulas in the sizes, or as numbers for given sizes
    #[command(after_help = "Example:\n  iverson cost matmul.iv matmul --derivative grad --at n=100,m=20,k=30")]
    Cost(Cost),
    /// Compare derivatives with finite differences and forward with reverse mode
    #[command(after_help = "Example:\n  iverson check-grad model.iv loss 'x=random(10)'\n\nThe exit code is 1 if a derivative is wrong.")]
    CheckGrad(CheckGrad),
    /// Time calls, apart from compilation
    #[command(after_help = "Example:\n  iverson bench model.iv loss --derivative grad 'x=random(100000)' --runs 50")]
    Bench(Bench),
    /// Find where the time of calls goes, by line of the source
    #[command(after_help = "Examples:\n  iverson profile model.iv loss --data in.npz\n  \
        iverson profile model.iv loss --derivative grad --data in.npz --threads 1\n\n\
        A loop of a derivative belongs to the line that it is derived from. Where loops of several lines have\n\
        become one, they are listed together. Times are those of the calling thread, waiting for others included.")]
    Profile(Profile),
    /// Write a C library and its header from functions and their derivatives
    #[command(after_help = "Examples:\n  iverson build gmm.iv loglik --derivative value-and-grad -o lib/gmm\n  \
        iverson build model.iv predict loss:grad --wrt w,b --lib static\n\n\
        The first writes lib/gmm.h, lib/libgmm.a and lib/libgmm.so, with the functions gmm_loglik and\n\
        gmm_value_and_grad_loglik. The header says what they take. The library needs nothing of Iverson:\n  \
        cc main.c -Ilib -Llib -lgmm -lm\n\n\
        A generic function is taken at f64, or at types that are named: 'norm[f32]:grad'.")]
    Build(Build),
    /// Lay out programs as they should be
    #[command(after_help = "Examples:\n  iverson fmt model.iv\n  iverson fmt --check examples/\n  iverson fmt - < model.iv\n\n\
        Comments stay, and so do empty lines between definitions and bindings. The program does not change.\n\
        A file with syntax errors is left as it is. With --check the exit code is 1 if a file would change.")]
    Fmt(Fmt),
    /// Work with definitions and values one after another
    #[command(
        after_help = "Example:\n  $ iverson repl\n  > def f(x: [n]f64) -> f64 = sum i. x[i]^2\n  > let x = [1.0, 2.0]\n  > grad(f)(x)\n  [2, 4]\n  \
        > :show f grad\n  > :help\n\nWithout a terminal the inputs are read from stdin; then the exit code is 1 if one was wrong."
    )]
    Repl(Repl),
    /// Print the completions of a shell
    #[command(after_help = "Bash, in ~/.bashrc:\n  eval \"$(iverson completions bash)\"\n\nZsh, in a folder of $fpath:\n  \
        iverson completions zsh > ~/.zfunc/_iverson\n\nFish:\n  iverson completions fish > ~/.config/fish/completions/iverson.fish\n\n\
        Functions and parameters are completed from the program that the command line names.")]
    Completions { shell: Shell },
    /// What may follow on a command line; the shells ask this
    #[command(hide = true)]
    Complete(Complete),
}

#[derive(Args)]
pub struct Repl {
    /// Programs to begin with
    #[arg(value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// The slow and simple interpreter, which starts at once, or native code
    #[arg(long, value_enum, default_value_t = Target::Interpret)]
    pub target: Target,
    /// Threads of native code (default: all processors)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub threads: Option<u32>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Shell {
    Bash,
    Zsh,
    Fish,
}

#[derive(Args)]
pub struct Complete {
    /// The line up to the cursor
    #[arg(long, conflicts_with = "words", allow_hyphen_values = true)]
    pub line: Option<String>,
    /// Its words, the last of which is being written
    #[arg(last = true, allow_hyphen_values = true)]
    pub words: Vec<String>,
}

#[derive(Args)]
pub struct Build {
    /// The program
    pub file: PathBuf,
    /// The functions in it; `loss:grad` is a derivative alone
    #[arg(value_name = "FN[:KIND]", required = true, value_parser = exported)]
    pub functions: Vec<Exported>,
    /// This derivative of each function, too; may be given several times
    #[arg(long, value_enum, value_name = "KIND")]
    pub derivative: Vec<Kind>,
    #[command(flatten)]
    pub wrt: Wrt,
    #[command(flatten)]
    pub storage: Storage,
    /// What the derivative may keep for its way back, as 200MB; loops that keep more run steps again
    #[arg(long, value_name = "SIZE", value_parser = memory_size)]
    pub memory: Option<u64>,
    /// Code for one value of a size or of a parameter that is one number, which is then no argument; may be repeated
    #[arg(long, value_name = "name=value", value_parser = assignment)]
    pub with: Vec<(String, String)>,
    /// Where the library goes and what it is called; names begin with NAME_ (default: as the program)
    #[arg(long, short, value_name = "[DIR/]NAME")]
    pub output: Option<PathBuf>,
    /// What is written beside the header
    #[arg(long, value_enum, value_name = "FORM", value_delimiter = ',', default_values_t = [Form::Static, Form::Shared])]
    pub lib: Vec<Form>,
    /// Code that rounds exactly as the interpreter does
    #[arg(long)]
    pub strict: bool,
    /// Take denormal numbers for zero while a function runs, and restore the mode after it
    #[arg(long)]
    pub flush_denormals: bool,
    /// Use threads, as many as OpenMP gives; programs that link the library need -fopenmp
    #[arg(long)]
    pub openmp: bool,
    /// The processor that the library is for, as the C compiler's -march has it; `any` for one that runs on all of a kind
    #[arg(long, value_name = "ARCH", default_value = "native")]
    pub march: String,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Form {
    /// libNAME.a
    Static,
    /// libNAME.so
    Shared,
    /// NAME.c, which needs no other file
    Source,
}

#[derive(Args)]
pub struct Fmt {
    /// Programs, folders of programs (*.iv), or - for stdin to stdout
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Write nothing; name the files that would change
    #[arg(long)]
    pub check: bool,
}

/// A function in a file.
#[derive(Args, Clone)]
pub struct Subject {
    /// The program
    pub file: PathBuf,
    /// The function in it
    #[arg(value_name = "FN")]
    pub function: String,
}

/// Values for its parameters.
#[derive(Args, Clone)]
pub struct Inputs {
    /// Values of parameters; they go before those in files
    #[arg(value_name = "name=value", value_parser = assignment)]
    pub arguments: Vec<(String, String)>,
    /// A file of values by name, .npz or .json; names that are no parameters are ignored
    #[arg(long, value_name = "FILE")]
    pub data: Vec<PathBuf>,
}

/// How it is executed.
#[derive(Args, Clone)]
pub struct Execution {
    /// Native code, or the slow and simple interpreter
    #[arg(long, value_enum, default_value_t = Target::C)]
    pub target: Target,
    /// Native code that rounds exactly as the interpreter does
    #[arg(long)]
    pub strict: bool,
    /// Native code that takes denormal numbers for zero, as operands and as results
    #[arg(long, conflicts_with = "strict")]
    pub flush_denormals: bool,
    /// Threads of native code (default: all processors)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub threads: Option<u32>,
    /// What a derivative may keep for its way back, as 200MB; loops that keep more run steps again (default: half of the
    /// memory that there is)
    #[arg(long, value_name = "SIZE", value_parser = memory_size)]
    pub memory: Option<u64>,
    /// Say on stderr what was compiled and how long it took
    #[arg(long, short)]
    pub verbose: bool,
    #[command(flatten)]
    pub passes: Passes,
}

/// What the compiler does not do.
#[derive(Args, Clone)]
pub struct Passes {
    /// Leave out these passes of the compiler, to see what they are good for
    #[arg(long, value_name = "PASS", value_delimiter = ',', value_parser = optional_pass)]
    without: Vec<&'static str>,
}

impl Passes {
    pub fn without(&self) -> Without {
        Without(self.without.clone())
    }
}

fn optional_pass(text: &str) -> Result<&'static str, String> {
    let passes = pipeline::optional_passes();
    match passes.iter().find(|name| **name == text) {
        Some(name) => Ok(name),
        None if pipeline::pass_names().contains(&text) => {
            Err(format!("there is no code without this pass; {} can be left out", passes.join(", ")))
        }
        None => Err(format!("no such pass; {} can be left out", passes.join(", "))),
    }
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Target {
    C,
    Interpret,
}

/// Where results go.
#[derive(Args, Clone)]
pub struct Output {
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// Write the results to a file instead of the terminal: a NumPy archive (.npz), one array (.npy),
    /// one sparse matrix (.mtx), or JSON (.json)
    #[arg(long, value_name = "FILE", value_parser = result_file)]
    pub out: Option<PathBuf>,
}

#[derive(Args, Clone)]
pub struct Wrt {
    /// Parameters to differentiate by, or fields of them (default: all with floats)
    #[arg(long, value_name = "a,p.w", value_delimiter = ',')]
    pub wrt: Option<Vec<String>>,
}

#[derive(Args, Clone)]
pub struct Directions {
    /// The direction of a parameter; left out it is zero
    #[arg(long, value_name = "name=value", value_parser = assignment)]
    pub dir: Vec<(String, String)>,
}

#[derive(Args, Clone)]
pub struct Seed {
    /// The cotangent of the result
    #[arg(long, value_name = "value", allow_hyphen_values = true)]
    pub seed: Option<String>,
}

#[derive(Args, Clone)]
pub struct Call {
    #[command(flatten)]
    pub subject: Subject,
    #[command(flatten)]
    pub inputs: Inputs,
    #[command(flatten)]
    pub execution: Execution,
    #[command(flatten)]
    pub output: Output,
}

#[derive(Args)]
pub struct Derivative {
    #[command(flatten)]
    pub call: Call,
    #[command(flatten)]
    pub wrt: Wrt,
}

/// A derivative that is a matrix.
#[derive(Args)]
pub struct MatrixDerivative {
    #[command(flatten)]
    pub call: Call,
    #[command(flatten)]
    pub wrt: Wrt,
    #[command(flatten)]
    pub storage: Storage,
    /// Draw where the entries are instead of the numbers
    #[arg(long, requires = "format", conflicts_with_all = ["json", "out"])]
    pub picture: bool,
}

/// How a Jacobian is computed, and how it or a Hessian is stored.
#[derive(Args, Clone, Copy, Default)]
pub struct Storage {
    /// How a Jacobian is computed (default: as it costs less)
    #[arg(long, value_enum, value_name = "MODE")]
    pub mode: Option<Mode>,
    /// A sparse Jacobian or Hessian: coordinates, or compressed rows
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub format: Option<Format>,
    /// One sparse matrix of all results by all parameters, in order
    #[arg(long, requires = "format")]
    pub stack: bool,
    /// Of a sparse Hessian only the entries on one side of the diagonal, and those on it
    #[arg(long, value_enum, value_name = "SIDE", requires = "format")]
    pub triangle: Option<Side>,
    /// The type of the indices of compressed rows [default: i32]
    #[arg(long, value_enum, value_name = "TYPE", requires = "format")]
    pub index: Option<Index>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Mode {
    /// A column at a time, for each number of the parameters
    Forward,
    /// A row at a time, for each number of the result
    Reverse,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Index {
    I32,
    I64,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Rows, columns and values of entries
    Coo,
    /// Compressed rows, sorted
    Csr,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Side {
    Lower,
    Upper,
}

#[derive(Args)]
pub struct Directional {
    #[command(flatten)]
    pub call: Call,
    #[command(flatten)]
    pub wrt: Wrt,
    #[command(flatten)]
    pub directions: Directions,
}

#[derive(Args)]
pub struct Seeded {
    #[command(flatten)]
    pub call: Call,
    #[command(flatten)]
    pub wrt: Wrt,
    #[command(flatten)]
    pub seed: Seed,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Kind {
    Grad,
    ValueAndGrad,
    Jvp,
    Vjp,
    Jacobian,
    Hessian,
    Hvp,
}

#[derive(Args)]
pub struct Show {
    #[command(flatten)]
    pub subject: Subject,
    /// Show this derivative of the function
    #[arg(long, value_enum, value_name = "KIND")]
    pub derivative: Option<Kind>,
    #[command(flatten)]
    pub wrt: Wrt,
    #[command(flatten)]
    pub storage: Storage,
    /// What the derivative may keep for its way back, as 200MB; loops that keep more run steps again
    #[arg(long, value_name = "SIZE", value_parser = memory_size)]
    pub memory: Option<u64>,
    /// Show the program as it is after this pass (default: `add_to_states`, the last that is of interest to a reader)
    #[arg(long, value_name = "PASS")]
    pub after: Option<String>,
    /// Show the generated code, or what it copies
    #[arg(long, value_enum, conflicts_with = "after")]
    pub emit: Option<Emit>,
    #[command(flatten)]
    pub passes: Passes,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Emit {
    /// C
    C,
    /// The loops that C is made from
    Loops,
    /// Which arrays the compiled code copies, and how often
    Copies,
}

#[derive(Args)]
pub struct Cost {
    #[command(flatten)]
    pub subject: Subject,
    /// The cost of this derivative of the function
    #[arg(long, value_enum, value_name = "KIND")]
    pub derivative: Option<Kind>,
    #[command(flatten)]
    pub wrt: Wrt,
    #[command(flatten)]
    pub storage: Storage,
    /// What a derivative may keep for its way back, as 200MB; loops that keep more run steps again (default: half of the
    /// memory that there is)
    #[arg(long, value_name = "SIZE", value_parser = memory_size)]
    pub memory: Option<u64>,
    /// Numbers for these sizes and integer parameters
    #[arg(long, value_name = "n=10,m=20", value_delimiter = ',', value_parser = assignment)]
    pub at: Vec<(String, String)>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Args)]
pub struct CheckGrad {
    #[command(flatten)]
    pub subject: Subject,
    #[command(flatten)]
    pub inputs: Inputs,
    #[command(flatten)]
    pub execution: Execution,
    #[command(flatten)]
    pub wrt: Wrt,
    /// The most coordinates to compare with finite differences
    #[arg(long, value_name = "N", default_value_t = 100)]
    pub coordinates: usize,
    /// The largest error allowed, relative to the derivative or 1 [default: 1e-5, where there is an f32 1e-3]
    #[arg(long, value_name = "E", allow_negative_numbers = true)]
    pub tolerance: Option<f64>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// A call of a function or a derivative, with everything it takes.
#[derive(Args)]
pub struct Work {
    #[command(flatten)]
    pub subject: Subject,
    #[command(flatten)]
    pub inputs: Inputs,
    #[command(flatten)]
    pub execution: Execution,
    /// Take this derivative of the function
    #[arg(long, value_enum, value_name = "KIND")]
    pub derivative: Option<Kind>,
    #[command(flatten)]
    pub wrt: Wrt,
    #[command(flatten)]
    pub storage: Storage,
    #[command(flatten)]
    pub directions: Directions,
    #[command(flatten)]
    pub seed: Seed,
}

#[derive(Args)]
pub struct Bench {
    #[command(flatten)]
    pub work: Work,
    /// How many calls to time, after one that is not
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..))]
    pub runs: u32,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// Write the result of the last call to a file: .npz, .npy, .mtx or .json
    #[arg(long, value_name = "FILE", value_parser = result_file)]
    pub out: Option<PathBuf>,
    /// Time calls when stdin asks for them: each line says how many, and is answered with their milliseconds
    #[arg(long, conflicts_with_all = ["runs", "json"])]
    pub listen: bool,
}

#[derive(Args)]
pub struct Profile {
    #[command(flatten)]
    pub work: Work,
    /// How long to sample calls
    #[arg(long, value_name = "S", default_value_t = 2.0, value_parser = seconds)]
    pub seconds: f64,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// A time that somebody waits for.
fn seconds(text: &str) -> Result<f64, String> {
    text.parse().ok().filter(|s| (0.01..=3600.0).contains(s)).ok_or_else(|| "expected seconds, from 0.01 to 3600".to_string())
}

/// A file whose ending says what it is to hold.
fn result_file(text: &str) -> Result<PathBuf, String> {
    let path = PathBuf::from(text);
    match path.extension().and_then(|e| e.to_str()) {
        Some("npz" | "npy" | "json" | "mtx") => Ok(path),
        _ => Err("results are written as .npz, .npy, .mtx or .json; the name has to end so".to_string()),
    }
}

/// A function, or a derivative of it.
#[derive(Clone)]
pub struct Exported {
    pub function: String,
    pub derivative: Option<Kind>,
}

/// `f` or `f:grad`
fn exported(text: &str) -> Result<Exported, String> {
    let Some((function, kind)) = text.split_once(':') else {
        return Ok(Exported { function: text.to_string(), derivative: None });
    };
    let known: Vec<String> = Kind::value_variants().iter().filter_map(|k| Some(k.to_possible_value()?.get_name().to_string())).collect();
    let kind = Kind::from_str(kind, false).map_err(|_| format!("no derivative `{kind}`; there are {}", known.join(", ")))?;
    Ok(Exported { function: function.to_string(), derivative: Some(kind) })
}

/// `name=value`
fn assignment(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.trim().is_empty() => Ok((name.trim().to_string(), value.to_string())),
        _ => Err("expected name=value, as in x=[1,2]".to_string()),
    }
}

/// A number of bytes: `65536`, `200MB`, `1.5 GB`, `64MiB`.
fn memory_size(text: &str) -> Result<u64, String> {
    let text = text.trim();
    let end = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
    let (number, unit) = (text[..end].parse::<f64>().ok(), text[end..].trim());
    let scale = match unit.to_ascii_lowercase().as_str() {
        "" | "b" => 1.0,
        "k" | "kb" => 1e3,
        "m" | "mb" => 1e6,
        "g" | "gb" => 1e9,
        "t" | "tb" => 1e12,
        "kib" => 1024.0,
        "mib" => 1024.0 * 1024.0,
        "gib" => 1024.0 * 1024.0 * 1024.0,
        "tib" => 1024.0 * 1024.0 * 1024.0 * 1024.0,
        _ => f64::NAN,
    };
    match number.map(|n| n * scale).filter(|bytes| *bytes >= 1.0 && *bytes < 1e18) {
        Some(bytes) => Ok(bytes as u64),
        None => Err("expected an amount of memory, as 200MB or 4GB".to_string()),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn options_are_consistent() {
        use clap::CommandFactory;
        super::Options::command().debug_assert();
    }
}
