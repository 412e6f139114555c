//! Reading texts: wrong ones give the messages in `golden/syntax`, right ones the tree, and no text makes the parser
//! panic, hang or overflow the stack.
//!
//! A golden file is a text, a line `---`, and what is said about the text; `BLESS=1` rewrites the latter.

use iverson::diagnostic::{Diagnostic, Sources, Span, render};
use iverson::syntax::ast::*;
use iverson::syntax::{parse, parse_expression};
use std::path::{Path, PathBuf};

fn files(folder: &str, extension: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(folder);
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|file| file.extension().is_some_and(|found| found == extension));
    files.sort();
    files
}

fn said(diagnostics: &[Diagnostic], text: &str) -> String {
    render(diagnostics, &Sources::single("test.iv", text), false)
}

#[test]
fn wrong_texts_are_explained() {
    let files = files("golden/syntax", "txt");
    assert!(files.len() > 20);
    let mut wrong = Vec::new();
    for file in files {
        let golden = std::fs::read_to_string(&file).unwrap();
        let (text, expected) = golden.split_once("\n---\n").expect("a golden file has a line `---`");
        let (_, diagnostics) = parse(0, text);
        assert!(!diagnostics.is_empty(), "{}: nothing is said about this text", file.display());
        let found = said(&diagnostics, text);
        if std::env::var_os("BLESS").is_some() {
            std::fs::write(&file, format!("{text}\n---\n{found}")).unwrap();
        } else if found != expected {
            wrong.push(format!("{}\n{found}", file.display()));
        }
    }
    assert!(wrong.is_empty(), "messages differ (BLESS=1 rewrites them):\n{}", wrong.join("\n"));
}

#[test]
fn right_programs_are_read() {
    for file in files("programs", "iv") {
        let text = std::fs::read_to_string(&file).unwrap();
        let (module, diagnostics) = parse(0, &text);
        assert!(diagnostics.is_empty(), "{}", said(&diagnostics, &text));
        assert_eq!(module.definitions.len(), text.lines().filter(|line| line.starts_with("def ")).count());
    }
}

/// The tree of an expression with every node in brackets.
fn tree(text: &str) -> String {
    let (exp, diagnostics) = parse_expression(0, text);
    assert!(diagnostics.is_empty(), "{}", said(&diagnostics, text));
    show(&exp)
}

fn join<T>(items: &[T], show: impl Fn(&T) -> String) -> String {
    items.iter().map(show).collect::<Vec<_>>().join(" ")
}

fn show(exp: &Exp) -> String {
    match &exp.kind {
        ExpKind::Name(name) => name.clone(),
        ExpKind::Int(value) => value.to_string(),
        ExpKind::Float(value) => format!("{value:?}"),
        ExpKind::Bool(value) => value.to_string(),
        ExpKind::Open(name) => format!("?{name}"),
        ExpKind::Unary(op, a) => format!("({op:?} {})", show(a)),
        ExpKind::Binary(op, _, a, b) => format!("({op:?} {} {})", show(a), show(b)),
        ExpKind::Call(f, arguments) => {
            let argument = |a: &Argument| a.name.as_ref().map_or(String::new(), |name| format!("{}=", name.text)) + &show(&a.value);
            format!("(call {})", [show(f), join(arguments, argument)].join(" ").trim_end())
        }
        ExpKind::Index(a, subscripts) => format!("(at {} {})", show(a), join(subscripts, show_subscript)),
        ExpKind::Bracket(items) => format!("[{}]", join(items, show)),
        ExpKind::Singleton(keys, value) => format!("{{{} -> {}}}", join(keys, show), show(value)),
        ExpKind::Tuple(parts) => format!("(tuple {})", join(parts, show)),
        ExpKind::Record(fields) => format!("{{{}}}", join(fields, |(name, e)| format!("{}: {}", name.text, show(e)))),
        ExpKind::Field(e, name) => format!("(field {} {})", show(e), name.text),
        ExpKind::Let(pattern, ty, value, body) => {
            let ty = ty.as_ref().map_or(String::new(), |ty| format!(": {}", show_type(ty)));
            format!("(let {}{ty} {} {})", show_pattern(pattern), show(value), show(body))
        }
        ExpKind::Binder(kind, bindings, body) => format!("({kind:?} {}. {})", join(bindings, show_binding), show(body)),
        ExpKind::If(c, a, Some(b)) => format!("(if {} {} {})", show(c), show(a), show(b)),
        ExpKind::If(c, a, None) => format!("(if {} {})", show(c), show(a)),
        ExpKind::History(pattern, init, index, body) => {
            format!("(history {} {} {} {})", show_pattern(pattern), show(init), show_binding(index), show(body))
        }
        ExpKind::Loop(pattern, init, trip, body) => {
            let trip = match &**trip {
                iverson::syntax::ast::Trip::For(index) => show_binding(index),
                iverson::syntax::ast::Trip::While(condition) => format!("while {}", show(condition)),
            };
            format!("(loop {} {} {trip} {})", show_pattern(pattern), show(init), show(body))
        }
        ExpKind::Annotated(annotations, e) => {
            let argument = |a: &Argument| a.name.as_ref().map_or(String::new(), |name| format!("{}=", name.text)) + &show(&a.value);
            let annotation = |a: &iverson::syntax::ast::Annotation| format!("#{}({})", a.name.text, join(&a.arguments, argument));
            format!("({} {})", join(annotations, annotation), show(e))
        }
        ExpKind::With(a, subscripts, value) => format!("(with {} {} {})", show(a), join(subscripts, show_subscript), show(value)),
        ExpKind::Ascribe(a, ty) => format!("({} : {})", show(a), show_type(ty)),
        ExpKind::Lambda(lambda) => format!("(lambda {} {})", join(&lambda.params, show_pattern), show(&lambda.body)),
        ExpKind::Operator(op) => format!("{op:?}"),
        ExpKind::Error => "error".into(),
    }
}

fn show_subscript(subscript: &Subscript) -> String {
    match subscript {
        Subscript::At(i) => show(i),
        Subscript::Slice(a, b) => format!("{}..{}", show(a), show(b)),
        Subscript::All(_) => ":".into(),
    }
}

fn show_binding(binding: &IndexBinding) -> String {
    match &binding.range {
        Some((low, high)) => format!("{}={}..{}", binding.name.text, show(low), show(high)),
        None => binding.name.text.clone(),
    }
}

fn show_pattern(pattern: &Pattern) -> String {
    match pattern {
        Pattern::Name(name) => name.text.clone(),
        Pattern::Tuple(parts, _) => format!("({})", join(parts, show_pattern)),
        Pattern::Sum(part, _) => format!("sum {}", show_pattern(part)),
    }
}

fn show_type(ty: &TypeExp) -> String {
    match &ty.kind {
        TypeKind::Scalar(scalar) => scalar.name().into(),
        TypeKind::Array(sizes, element) => format!("[{}]{}", join(sizes, show), show_type(element)),
        TypeKind::Tuple(parts) => format!("({})", join(parts, show_type)),
        TypeKind::Structured(word, widths, array) => format!("{}<{}> {}", word.text, join(widths, show), show_type(array)),
        TypeKind::Record(fields) => format!("{{{}}}", join(fields, |(name, ty)| format!("{}: {}", name.text, show_type(ty)))),
        TypeKind::Name(name) => name.clone(),
        TypeKind::Function(params, result) => format!("<{} -> {}>", join(params, show_type), show_type(result)),
        TypeKind::Error => "error".into(),
    }
}

#[test]
fn functions_are_read() {
    assert_eq!(tree("map(|x| 2 * x + 1, xs)"), "(call map (lambda x (Add (Mul 2 x) 1)) xs)");
    assert_eq!(tree("|(a, b), c| a"), "(lambda (a b) c a)");
    assert_eq!(tree("|x| |y| x"), "(lambda x (lambda y x))");
    assert_eq!(tree("(|x| x)(1)"), "(call (lambda x x) 1)");
    assert_eq!(tree("f((+), (-), (div), (<=), (and), (not))"), "(call f Binary(Add) Binary(Sub) Binary(IDiv) Binary(Le) Binary(And) Not)");
    assert_eq!(tree("reduce(max, ne, xs)"), "(call reduce max ne xs)");
    assert_eq!(tree("let m = max; m(1, 2)"), "(let m max (call m 1 2))");
    assert_eq!(tree("let g: f64 -> f64 = |x| x; g(1)"), "(let g: <f64 -> f64> (lambda x x) (call g 1))");
    assert_eq!(tree("let g: (f64, [n]i64) -> [m]f64 = h; 1"), "(let g: <f64 [n]i64 -> [m]f64> h 1)");
    assert_eq!(tree("let g: ((f64, i64)) -> (f64, f64) = h; 1"), "(let g: <(f64 i64) -> (f64 f64)> h 1)");
}

#[test]
fn operators_bind_as_documented() {
    assert_eq!(tree("a + b * c - d"), "(Sub (Add a (Mul b c)) d)");
    assert_eq!(tree("a / b * c div d mod e"), "(IMod (IDiv (Mul (Div a b) c) d) e)");
    assert_eq!(tree("a ^ b ^ c"), "(Pow a (Pow b c))");
    assert_eq!(tree("-a ^ 2"), "(Neg (Pow a 2))");
    assert_eq!(tree("a ^ -b * c"), "(Mul (Pow a (Neg b)) c)");
    assert_eq!(tree("-a * b - - c"), "(Sub (Mul (Neg a) b) (Neg c))");
    assert_eq!(tree("a or b and not c == d + 1"), "(Or a (And b (Not (Eq c (Add d 1)))))");
    assert_eq!(tree("not not a and b"), "(And (Not (Not a)) b)");
    assert_eq!(tree("(a < b) == (b < c)"), "(Eq (Lt a b) (Lt b c))");
    assert_eq!(tree("a*b<=c"), "(Le (Mul a b) c)");
}

#[test]
fn binders_bindings_and_branches_reach_far_right() {
    assert_eq!(tree("1 + sum i. x[i] + 1"), "(Add 1 (Sum i. (Add (at x i) 1)))");
    assert_eq!(tree("a - 0.5 * sum a. q[a] * 2"), "(Sub a (Mul 0.5 (Sum a. (Mul (at q a) 2))))");
    assert_eq!(tree("-sum i. x[i]"), "(Neg (Sum i. (at x i)))");
    assert_eq!(tree("m + log(sum i. exp(x[i] - m)) * 2"), "(Add m (Mul (call log (Sum i. (call exp (Sub (at x i) m)))) 2))");
    assert_eq!(tree("2 * let x = 1; let y = x; x + y"), "(Mul 2 (let x 1 (let y x (Add x y))))");
    assert_eq!(tree("a + if c then b else d + 1"), "(Add a (if c b (Add d 1)))");
    assert_eq!(tree("if a then if b then c else d"), "(if a (if b c d))");
    assert_eq!(tree("(for i. a, for j. b)"), "(tuple (For i. a) (For j. b))");
    assert_eq!(tree("if c then let x = 1; x else 2"), "(if c (let x 1 x) 2)");
}

#[test]
fn every_construct_is_read() {
    assert_eq!(tree("for i in 0..n, j. e"), "(For i=0..n j. e)");
    assert_eq!(tree("sum i, j in i+1..2*n-1. e"), "(Sum i j=(Add i 1)..(Sub (Mul 2 n) 1). e)");
    assert_eq!(tree("prod i in 0..2. argmax j. all k. any l. argmin m. p"), "(Prod i=0..2. (ArgMax j. (All k. (Any l. (ArgMin m. p)))))");
    assert_eq!(tree("max(a, b) + min i. min(x[i], max j. y[j])"), "(Add (call max a b) (Min i. (call min (at x i) (Max j. (at y j)))))");
    assert_eq!(tree("f64(i) + 1_000 + 2.5e-3 + 1e5"), "(Add (Add (Add (call f64 i) 1000) 0.0025) 100000.0)");
    assert_eq!(tree("[p] * x + [1, 2][0] + []"), "(Add (Add (Mul [p] x) (at [1 2] 0)) [])");
    assert_eq!(tree("{k -> v} + {(i, j + 1) -> sum k. v}"), "(Add {k -> v} {i (Add j 1) -> (Sum k. v)})");
    assert_eq!(tree("(e : [n, 2 * m][k](f64, i64))"), "(e : [n (Mul 2 m)][k](f64 i64))");
    assert_eq!(tree("let (a, (b, c)) = e; let x: f64 = a; b"), "(let (a (b c)) e (let x: f64 a b))");
    assert_eq!(tree("grad(f, wrt = (x, y))(x, y)[i]"), "(at (call (call grad f wrt=(tuple x y)) x y) i)");
    assert_eq!(tree("A[:, j] + x[a..b + 1][0] + f()"), "(Add (Add (at A : j) (at (at x a..(Add b 1)) 0)) (call f))");
    assert_eq!(tree("history (p, q) = (1.0, 2) for i in 0..n do (p * q, q)"), "(history (p q) (tuple 1.0 2) i=0..n (tuple (Mul p q) q))");
    assert_eq!(tree("if c then a"), "(if c a)");
    assert_eq!(tree("true and (false) -- and that is all"), "(And true false)");
    assert_eq!(tree("d0_pow(x, y) * infinity"), "(Mul (call d0_pow x y) infinity)");
}

#[test]
fn spans_cover_their_text() {
    let text = "sum i. é\n";
    let (_, diagnostics) = parse_expression(0, text);
    let sources = Sources::single("test.iv", text);
    assert_eq!(sources.slice(diagnostics[0].labels[0].span), "é");
    assert_eq!(sources.place(diagnostics[0].labels[0].span), "test.iv:1:8");
    let (exp, _) = parse_expression(0, "  f(x)[ i ] + 1");
    assert_eq!((exp.span.start, exp.span.end), (2, 15));
    let (module, _) = parse(0, "-- ä\ndef f(x: [n]f64) -> f64 = x[0]  ");
    let span = module.definitions[0].span;
    assert_eq!((span.start, span.end), (6, 36));
}

#[test]
fn any_span_can_be_drawn() {
    for text in ["", "\n", "ä", "a\nb", "a\r\nbé\r\n", "\u{2028}x\ty\n\n"] {
        let sources = Sources::single("test.iv", text);
        for start in 0..text.len() + 3 {
            for end in 0..text.len() + 3 {
                let span = Span { source: 0, start: start as u32, end: end as u32 };
                let far = Span { source: 7, ..span };
                for color in [false, true] {
                    render(&[Diagnostic::error(span, "m").label(Span::new(0, 0, end), "l").label(far, "f").note("n")], &sources, color);
                }
                render(&[Diagnostic::warning(far, "m")], &sources, false);
                sources.position(span);
                sources.slice(span);
            }
        }
    }
}

#[test]
fn labels_in_two_files_are_both_drawn() {
    let mut sources = Sources::single("a.iv", "def f(x: f64) -> f64 = x\n");
    let library = sources.add("library.iv", "def g(x: f64) -> f64 = x\n");
    let diagnostic =
        Diagnostic::warning(Span::new(library, 4, 5), "`g` hides another").here("this one").label(Span::new(0, 4, 5), "that one");
    let expected = "\
Warning: `g` hides another
   ╭─[ library.iv:1:5 ]
   │
 1 │ def g(x: f64) -> f64 = x
   │     ┬
   │     ╰── this one
   │
   ├─[ a.iv:1:5 ]
   │
 1 │ def f(x: f64) -> f64 = x
   │     ┬
   │     ╰── that one
───╯
";
    assert_eq!(render(&[diagnostic], &sources, false), expected);
}

#[test]
fn many_messages_are_counted() {
    let text = "def f(x: f64) -> f64 = x;\n".repeat(60);
    let (_, diagnostics) = parse(0, &text);
    assert_eq!(diagnostics.len(), 60);
    let said = said(&diagnostics, &text);
    assert_eq!(said.matches("Error").count(), 50);
    assert!(said.ends_with("\n10 more messages are not shown\n"));
}

#[test]
fn deep_nesting_is_reported() {
    let many = |text: &str| text.repeat(100_000);
    let texts = [
        many("("),
        many("[") + &many("]"),
        many("f("),
        many("{1 -> "),
        many("x["),
        many("- "),
        many("not "),
        many("sum i. "),
        many("sum i in 0.."),
        many("if a then "),
        many("if a then b else "),
        many("let x = "),
        many("let x = 1; ") + "x",
        many("let (a, b) = c; ") + "x",
        format!("let {}x{} = 1; x", many("("), many(")")),
        format!("(x : {}f64)", many("[n]")),
        format!("(x : {}f64{})", many("("), many(")")),
        "1".to_string() + &many(" + 1"),
        "1".to_string() + &many(" ^ 1"),
        "1".to_string() + &many(" < 1"),
        "f".to_string() + &many("(x)"),
        "f".to_string() + &many("[x]"),
        many("|x| "),
        many("max("),
        many("history p = "),
        many("loop p = 1 while "),
        many("x with [0] = "),
        many("#[a] loop p = "),
        "p".to_string() + &many(".x"),
        many("1.x"),
        many("! "),
        "if a then b ".to_string() + &many("elif a then b "),
        format!("(x : {}f64)", many("f64 -> ")),
        format!("(x : {}f64)", many("csr ")),
        many("+ "),
        many("1 * + "),
        format!("{}1{}", "(1 + ".repeat(150), format!("{})", " + 1".repeat(1900)).repeat(150)),
    ];
    for text in texts {
        let (_, diagnostics) = parse_expression(0, &text);
        let deep = diagnostics.iter().filter(|diagnostic| diagnostic.message.contains("nested too deeply")).count();
        assert_eq!(deep, 1, "{}...: {}", &text[..30], diagnostics.len());
        parse(0, &format!("def f(x: f64) = {text}"));
        parse(0, &format!("def f(x: {text}"));
    }
}

/// Reads a text in every way; fails only by a panic, and checks that what is said can be drawn.
fn survive(text: &str) {
    let (_, diagnostics) = parse(0, text);
    said(&diagnostics, text);
    parse_expression(0, text);
}

#[test]
fn broken_programs_are_survived() {
    let mut texts: Vec<String> = files("programs", "iv").iter().map(|file| std::fs::read_to_string(file).unwrap()).collect();
    texts.push(std::fs::read_to_string(files("golden/syntax", "txt").iter().find(|f| f.ends_with("unsupported.txt")).unwrap()).unwrap());
    for text in &texts {
        let text: String = text.split("\n---").next().unwrap().chars().take(1500).collect();
        for (end, _) in text.char_indices() {
            parse(0, &text[..end]);
        }
        let (tokens, _) = iverson::syntax::lexer::tokenize(0, &text);
        for (_, span) in &tokens {
            let (start, end) = (span.start as usize, span.end as usize);
            survive(&format!("{} {}", &text[..start], &text[end..]));
            survive(&format!("{} {} {}", &text[..end], &text[start..end], &text[end..]));
        }
    }
}

#[test]
fn random_texts_are_survived() {
    let words = "def let in for sum max if then else and not div true history do loop while with type f x i n f64 1 2.5 ( ) [ ] { } \
                 , ; : . .. | # + - * / ^ == < -> = && ! ** // % => := @ é -- \n";
    let words: Vec<&str> = words.split(' ').filter(|word| !word.is_empty()).collect();
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut random = move |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) as usize % below
    };
    for round in 0..4000 {
        let length = random(60);
        let text: Vec<&str> = (0..length).map(|_| words[random(words.len())]).collect();
        let text = text.join(if round % 2 == 0 { " " } else { "" });
        survive(&text);
        survive(&format!("def f(x: [n]f64) -> f64 = {text}"));
        let bytes: Vec<u8> = (0..length).map(|_| random(256) as u8).collect();
        survive(&String::from_utf8_lossy(&bytes));
    }
}
