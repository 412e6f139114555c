//! Prints kernels for people: one statement per line, blocks indented. There is no reader for it.

use super::tiles::Tile;
use super::*;
use std::fmt::Write;

pub fn print(kernel: &Kernel) -> String {
    let mut out = String::new();
    let _ = writeln!(out, "kernel {}", kernel.name);
    for (l, e) in &kernel.derived {
        let _ = writeln!(out, "  let {} = {}", local(kernel, *l), expr(kernel, e));
    }
    for (k, slot) in kernel.arena.iter().enumerate() {
        let _ = writeln!(out, "  slot {k}: {} {}, behind {:?}", expr(kernel, &slot.count), slot.scalar.name(), slot.behind);
    }
    for condition in &kernel.assumed {
        let _ = writeln!(out, "  assume {}", expr(kernel, condition));
    }
    block(kernel, &kernel.body, 1, &mut out);
    out
}

fn local(kernel: &Kernel, l: Local) -> String {
    format!("{}_{}", kernel.local(l).name, l.0)
}
fn buffer(kernel: &Kernel, b: Buffer) -> String {
    format!("{}#{}", kernel.buffer(b).name, b.0)
}
fn target(kernel: &Kernel, t: &Target) -> String {
    match t {
        Target::Local(l) => local(kernel, *l),
        Target::Place(b, offset) => format!("{}[{}]", buffer(kernel, *b), expr(kernel, offset)),
    }
}
fn list(kernel: &Kernel, es: &[Expr]) -> String {
    es.iter().map(|e| expr(kernel, e)).collect::<Vec<_>>().join(", ")
}

pub fn expr(kernel: &Kernel, e: &Expr) -> String {
    match e {
        Expr::Lit(lit) => lit.digits(),
        Expr::Local(l) => local(kernel, *l),
        Expr::Load(b, offset) => format!("{}[{}]", buffer(kernel, *b), expr(kernel, offset)),
        Expr::Op(op, args) => match (op.infix(), args.as_slice()) {
            (Some((symbol, _)), [a, b]) => format!("({} {symbol} {})", expr(kernel, a), expr(kernel, b)),
            _ => format!("{}({})", op.name(), list(kernel, args)),
        },
        Expr::Partial(op, k, args) => format!("{}({})", op.partial_name(*k), list(kernel, args)),
        Expr::Select(p, a, b) => format!("({} ? {} : {})", expr(kernel, p), expr(kernel, a), expr(kernel, b)),
    }
}

fn block(kernel: &Kernel, stmts: &[Stmt], depth: usize, out: &mut String) {
    for s in stmts {
        stmt(kernel, s, depth, out);
    }
}

fn stmt(kernel: &Kernel, s: &Stmt, depth: usize, out: &mut String) {
    let e = |e: &Expr| expr(kernel, e);
    let b = |b: &Buffer| buffer(kernel, *b);
    let pad = "  ".repeat(depth);
    let _ = match s {
        Stmt::Let(l, value) => writeln!(out, "{pad}let {} = {}", local(kernel, *l), e(value)),
        Stmt::Var(l, value) => writeln!(out, "{pad}var {} = {}", local(kernel, *l), e(value)),
        Stmt::Set(t, value) => writeln!(out, "{pad}{} = {}", target(kernel, t), e(value)),
        Stmt::Add(t, value) => writeln!(out, "{pad}{} += {}", target(kernel, t), e(value)),
        Stmt::Loop(l) => {
            let order = match &l.order {
                Order::Sequential => "sequential",
                Order::Independent => "independent",
                Order::Reduction(_) => "reduction",
                Order::Accumulation(..) => "accumulation",
            };
            let schedule = schedule(kernel, &l.schedule)
                + tile(&kernel.body, l.index).map_or("", words)
                + if fetches(&kernel.body, l.index) { ", the next step's rows fetched" } else { "" };
            let _ = writeln!(out, "{pad}for {} in {}..{} ({order}{schedule})", local(kernel, l.index), e(&l.lo), e(&l.hi));
            block(kernel, &l.body, depth + 1, out);
            Ok(())
        }
        Stmt::If(p, yes, no) => {
            let _ = writeln!(out, "{pad}if {}", e(p));
            block(kernel, yes, depth + 1, out);
            if !no.is_empty() {
                let _ = writeln!(out, "{pad}else");
                block(kernel, no, depth + 1, out);
            }
            Ok(())
        }
        Stmt::Forever(body) => {
            let _ = writeln!(out, "{pad}forever");
            block(kernel, body, depth + 1, out);
            Ok(())
        }
        Stmt::LeaveUnless(p) => writeln!(out, "{pad}leave unless {}", e(p)),
        Stmt::Allocate(x, count) => writeln!(out, "{pad}allocate {}: {} ({:?})", b(x), e(count), kernel.buffer(*x).home),
        Stmt::Zero(x, offset, count) => writeln!(out, "{pad}zero {}[{}; {}]", b(x), e(offset), e(count)),
        Stmt::Copy(to, at, from, from_at, count) => {
            writeln!(out, "{pad}copy {}[{}; {}] from {}[{}]", b(to), e(at), e(count), b(from), e(from_at))
        }
        Stmt::Check(check) => match check {
            Check::Read { index, size, .. } => writeln!(out, "{pad}check read {} in {}", e(index), e(size)),
            Check::Key { index, size, .. } => writeln!(out, "{pad}check key {} in {}", e(index), e(size)),
            Check::NotEmpty { lo, hi, .. } => writeln!(out, "{pad}check not empty {}..{}", e(lo), e(hi)),
            Check::Defined { op, args, .. } => writeln!(out, "{pad}check defined {}({})", op.name(), list(kernel, args)),
        },
        Stmt::Mark(k) => writeln!(out, "{pad}mark {k}"),
        Stmt::Count(c) => writeln!(out, "{pad}count {} {} {}", c.additions, c.multiplications, c.calls),
        Stmt::Gemm(g) => {
            let matrix = |m: &Matrix| format!("{}[{}; {}, {}]", b(&m.buffer), e(&m.offset), e(&m.row_stride), e(&m.column_stride));
            let sign = if g.accumulate { "+=" } else { "=" };
            let _ = writeln!(
                out,
                "{pad}gemm {} {sign} {} * {} * {} ({} x {} x {}){}",
                matrix(&g.dest),
                e(&g.scale),
                matrix(&g.left),
                matrix(&g.right),
                e(&g.rows),
                e(&g.depth),
                e(&g.columns),
                if g.otherwise.is_empty() { "" } else { ", otherwise" }
            );
            block(kernel, &g.otherwise, depth + 1, out);
            Ok(())
        }
    };
}

/// How a loop of a body in lanes runs.
fn tile(block: &[Stmt], index: Local) -> Option<&Tile> {
    block.iter().find_map(|s| {
        let own = match s {
            Stmt::Loop(l) => match l.schedule.within() {
                Schedule::Lanes(lanes) => lanes.tiles.get(&index),
                _ => None,
            },
            _ => None,
        };
        own.or_else(|| s.blocks().into_iter().find_map(|b| tile(b, index)))
    })
}

/// Whether a loop of a body in lanes fetches what its next step needs.
fn fetches(block: &[Stmt], index: Local) -> bool {
    block.iter().any(|s| {
        let own = matches!(s, Stmt::Loop(l) if matches!(l.schedule.within(), Schedule::Lanes(lanes) if lanes.ahead.contains_key(&index)));
        own || s.blocks().into_iter().any(|b| fetches(b, index))
    })
}

fn words(tile: &Tile) -> &'static str {
    match tile {
        Tile::Sums(_) => ", four sums at once",
        Tile::Rows(_) => ", four rows at once",
        Tile::Outer(_) => ", eight by eight places at once",
    }
}

fn schedule(kernel: &Kernel, how: &Schedule) -> String {
    match how {
        Schedule::Plain => String::new(),
        Schedule::Vector => ", vector".to_string(),
        Schedule::Lanes(lanes) => format!(", {}{} in lanes", if lanes.partial { "up to " } else { "" }, lanes.width()),
        Schedule::Parallel(p) => {
            let (most, cost) = (p.chunks.most, expr(kernel, &p.chunks.cost));
            let threads = if p.threads { "parallel " } else { "" };
            format!(", {threads}in at most {most} chunks of cost {cost}{}", schedule(kernel, &p.within))
        }
    }
}
