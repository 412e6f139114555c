//! Forward mode, reverse mode and differences agree, and the gradient is cheap.

use super::stages::{Stages, Target};
use super::{direction, inner, size};
use iverson::bind;
use iverson::check::{self, DerivativeKind};
use iverson::cost::{Cost, cost};
use iverson::interpret;
use iverson::ir::build::exp_size;
use iverson::ir::print::print_function;
use iverson::ir::widen::{has_f32, widen};
use iverson::ir::{Annotation, Body, Exp, FunctionId, Lit, Program, Reduction, Size, Type, Var, Vars};
use iverson::value::Value;

/// The stages of `jvp_f` and `vjp_f`, by all float parameters.
pub struct Modes {
    pub function: Stages,
    pub forward: Stages,
    pub reverse: Stages,
    /// Positions of the float parameters.
    pub wrt: Vec<usize>,
    /// Whether `stop_gradient` makes derivatives other than differences.
    pub stops: bool,
    /// Whether the function is a derivative itself. What it saves of triangles it saves in squares, whose adjoints are added.
    pub again: bool,
    /// The formulas of the function and of its vjp, after all passes.
    costs: [Cost; 2],
}

/// What the bound on tangents counts beside operations.
#[derive(Clone, Copy, PartialEq, Eq)]
#[allow(dead_code)]
pub enum Counted {
    Results,
    InputsToo,
}

impl Modes {
    /// `None` where there is nothing to differentiate.
    pub fn new(program: &Program, id: FunctionId) -> Result<Option<Modes>, String> {
        let wrt = check::float_params(program, id);
        if wrt.is_empty() || !program.function(id).result.has_float() {
            return Ok(None);
        }
        let stages = |kind: DerivativeKind| {
            let mut program = program.clone();
            let derived = check::derive(&mut program, id, kind, None).map_err(|d| d.message)?;
            Stages::new(&program, derived).map_err(|e| format!("{}: {e}", kind.name()))
        };
        let (function, reverse) = (Stages::new(program, id)?, stages(DerivativeKind::Vjp)?);
        let costs = [&function, &reverse].map(|stages| {
            let (program, id) = stages.last();
            cost(program, id)
        });
        Ok(Some(Modes { function, forward: stages(DerivativeKind::Jvp)?, reverse, wrt, stops: false, again: false, costs }))
    }

    /// All that must hold at a point; `Ok(false)` where the function fails there.
    pub fn check(&self, args: &[Value], target: Target) -> Result<bool, String> {
        let Ok((value, counts)) = self.function.call(args, target)? else { return Ok(false) };
        let tangents: Vec<Value> =
            self.wrt.iter().enumerate().map(|(k, p)| direction(&args[*p], k as u64 + 1).expect("a float parameter")).collect();
        let Some(seed) = direction(&value, 77) else { return Ok(true) };

        let mut forward_args = args.to_vec();
        forward_args.extend(tangents.iter().cloned());
        let forward = self.forward.call(&forward_args, target)?.map_err(|f| format!("jvp fails: {}", f.message))?.0;
        let mut reverse_args = args.to_vec();
        reverse_args.push(seed.clone());
        let (reverse, _) = self.reverse.call(&reverse_args, target)?.map_err(|f| format!("vjp fails: {}", f.message))?;
        let (Value::Tuple(forward), Value::Tuple(reverse)) = (&forward, &reverse) else {
            return Err("derived functions give pairs".to_string());
        };
        let (program, id) = self.function.last();
        for (mode, first) in [("jvp", &forward[0]), ("vjp", &reverse[0])] {
            super::stages::check_same(&value, first, super::stages::tolerance(program, id))
                .map_err(|e| format!("the value from {mode} is another: {e}"))?;
        }
        let adjoints = if self.wrt.len() == 1 { vec![reverse[1].clone()] } else { parts(&reverse[1])? };

        for (stages, cost, args) in [(&self.function, &self.costs[0], args), (&self.reverse, &self.costs[1], reverse_args.as_slice())] {
            formulas_hold(stages.last(), cost, args)?;
        }
        if value.floats().iter().any(|x| !x.is_finite()) {
            return Ok(true);
        }
        self.dual(&seed, &forward[1], &adjoints, &tangents)?;
        if !self.stops {
            self.differences(args, &tangents, &forward[1], &value)?;
        }

        // Before `store_or_recompute` a gradient costs at most four times the function, its inputs and its outputs. What is
        // done in front of a loop instead of in each step counts even if the loop never runs: `hoist` does so in functions,
        // and gradients are made so. The states that loops start from and what updates write cost nothing; their adjoints are added.
        let inputs: u64 = args.iter().map(size).sum();
        let cost_of = |(program, id): (&Program, FunctionId)| interpret::call_measured(program, id, args).map_err(|f| f.message);
        let ((_, settled, memory), (_, last, last_memory)) = (cost_of(self.function.bounded())?, cost_of(self.function.last())?);
        let moved = memory.moved.max(last_memory.moved);
        let (_, hoisted, _) = cost_of(self.function.hoisted())?;
        let own = settled.total().max(hoisted.total()).max(last.total());
        // A loop that is cut into blocks runs its steps once more forwards for every level of blocks.
        let (program, id) = self.function.bounded();
        let Body::Exp(body) = &program.function(id).body else { return Err("a function that is not defined".to_string()) };
        // What has a size of its own in every step cannot be kept for the way back, and is computed once more.
        let factor = 4 + levels_of_blocks(body, false) + self.has_ragged(&program.vars, body, false, &mut vec![]) as u64;
        let bound = factor * (own + inputs + moved + size(&value));
        let (program, id) = self.reverse.bounded();
        let cost = interpret::call(program, id, &reverse_args).map_err(|f| f.message)?.1.total();
        if cost > bound {
            return Err(format!(
                "the gradient costs {cost} operations; the function costs {own} (as written {}), with {inputs} inputs, {moved} elements moved into loops and updates and {} outputs the bound is {bound}\n{}",
                counts.total(),
                size(&value),
                print_function(program, id)
            ));
        }
        Ok(true)
    }

    /// Whether loops have arrays or loops in them whose sizes are computed there, from data or from states.
    fn has_ragged(&self, vars: &Vars, exp: &Exp, inside: bool, computed: &mut Vec<Var>) -> bool {
        let is_computed = |size: &Size, computed: &[Var]| computed.iter().any(|c| size.mentions(*c));
        let of_data = |e: &Exp, computed: &[Var]| exp_size(e).is_none_or(|size| is_computed(&size, computed));
        let ragged = match exp {
            Exp::Let(bound, _, _) => bound.iter().any(|v| vars.ty(*v).shape().iter().any(|size| is_computed(size, computed))),
            Exp::For(_, size, _) => is_computed(size, computed),
            Exp::Sum(range, _) | Exp::Reduce(_, range, _, _) => inside && (of_data(&range.lo, computed) || of_data(&range.hi, computed)),
            _ => false,
        };
        if ragged {
            return true;
        }
        let is_loop = matches!(exp, Exp::For(..) | Exp::Sum(..) | Exp::Reduce(..) | Exp::History(_) | Exp::Loop(_));
        let bound = match exp {
            Exp::Let(bound, _, _) if inside => bound.clone(),
            Exp::For(i, _, _) if self.again => vec![*i],
            Exp::Sum(range, _) if self.again => vec![range.index],
            Exp::History(h) => h.state.clone(),
            Exp::Loop(l) => l.state.clone(),
            _ => vec![],
        };
        computed.extend(bound.iter().filter(|v| *vars.ty(**v) == Type::I64));
        let mut found = false;
        exp.for_each_child(&mut |e| found = found || self.has_ragged(vars, e, inside || is_loop, computed));
        found
    }

    /// How many loops of the function stand in each other.
    pub fn nest(&self) -> usize {
        fn of(exp: &Exp) -> usize {
            let own = matches!(exp, Exp::For(..) | Exp::Sum(..) | Exp::Reduce(..) | Exp::History(_) | Exp::Loop(_)) as usize;
            let mut inside = 0;
            exp.for_each_child(&mut |e| inside = inside.max(of(e)));
            own + inside
        }
        let (program, id) = self.function.bounded();
        match &program.function(id).body {
            Body::Exp(body) => of(body),
            Body::Derived { .. } | Body::Entries(_) | Body::Jacobian { .. } => 0,
        }
    }

    /// A value and its tangent cost at most four times what the value and what it consists of do. Of random programs the
    /// inputs and what loops start from count too, as they do for gradients: many of their loops never run.
    pub fn tangent_is_cheap(&self, args: &[Value], counted: Counted) -> Result<(), String> {
        let (program, id) = self.function.bounded();
        let Body::Exp(body) = &program.function(id).body else { return Err("a function that is not defined".to_string()) };
        let (value, settled, memory) = interpret::call_measured(program, id, args).map_err(|f| f.message)?;
        let given = match counted {
            Counted::Results => 0,
            Counted::InputsToo => args.iter().map(size).sum::<u64>() + memory.moved,
        };
        let mut own = settled.total();
        for (stage, id) in [self.function.hoisted(), self.function.last()] {
            own = own.max(interpret::call(stage, id, args).map_err(|f| f.message)?.1.total());
        }
        let mut all = args.to_vec();
        all.extend(self.wrt.iter().enumerate().map(|(k, p)| direction(&args[*p], k as u64 + 1).expect("a float parameter")));
        let (program, id) = self.forward.bounded();
        let cost = interpret::call(program, id, &all).map_err(|f| f.message)?.1.total();
        // A product has one multiplication more for each factor, so that one-hot tangents leave one term of it.
        let bound = if has_product(body) { 5 } else { 4 } * (own + given + size(&value));
        if cost > bound {
            return Err(format!(
                "the value and its tangent cost {cost} operations; the function costs {own}, with {} outputs and {given} other numbers the bound is {bound}\n{}",
                size(&value),
                print_function(program, id)
            ));
        }
        Ok(())
    }

    /// `<seed, J dx> = <Jᵀ seed, dx>`, to the rounding of the terms that are added.
    fn dual(&self, seed: &Value, tangent: &Value, adjoints: &[Value], tangents: &[Value]) -> Result<(), String> {
        let left = inner(seed, tangent);
        let right: f64 = adjoints.iter().zip(tangents).map(|(a, t)| inner(a, t)).sum();
        let terms = |a: &Value, b: &Value| a.floats().iter().zip(b.floats()).map(|(x, y)| (x * y).abs()).sum::<f64>();
        let scale = terms(seed, tangent) + adjoints.iter().zip(tangents).map(|(a, t)| terms(a, t)).sum::<f64>();
        // Strong zeros may stop an infinity in one mode and not in the other.
        if !scale.is_finite() {
            return Ok(());
        }
        let (program, id) = self.function.last();
        let tolerance = if has_f32(program, id) { 1e-4 } else { 1e-9 };
        if (left - right).abs() > tolerance * (scale + 1e-3) {
            return Err(format!("forward mode gives {left}, reverse mode {right}: they are not dual"));
        }
        Ok(())
    }

    /// The tangent against differences. Where those from both sides disagree, the function has a kink, and its derivative
    /// is a matter of convention. Where there is an `f32`, differences are those of the function computed in `f64`.
    fn differences(&self, args: &[Value], tangents: &[Value], tangent: &Value, value: &Value) -> Result<(), String> {
        let (program, id) = self.function.last();
        let single = has_f32(program, id);
        let wide = if single { widen(program) } else { program.clone() };
        let at = |h: f64| -> Option<Vec<f64>> {
            let mut moved: Vec<Value> = args.iter().map(Value::widened).collect();
            for (p, t) in self.wrt.iter().zip(tangents) {
                let step = t.floats();
                let mut k = 0;
                moved[*p].for_each_float(&mut |x| {
                    *x += h * step[k];
                    k += 1;
                });
            }
            Some(interpret::call(&wide, id, &moved).ok()?.0.floats())
        };
        let here = if single { at(0.0).unwrap_or_else(|| value.floats()) } else { value.floats() };
        let tolerance = if single { 2e-3 } else { 1e-4 };
        let tangent = tangent.floats();
        let (h, k) = (1e-5, 1e-4);
        let (Some(up), Some(down), Some(far_up), Some(far_down)) = (at(h), at(-h), at(k), at(-k)) else { return Ok(()) };
        for i in 0..here.len() {
            let right = (up[i] - here[i]) / h;
            let left = (here[i] - down[i]) / h;
            let near = (up[i] - down[i]) / (2.0 * h);
            let far = (far_up[i] - far_down[i]) / (2.0 * k);
            let scale = 1.0 + near.abs() + here[i].abs();
            let smooth = (right - left).abs() <= 1e-3 * scale && (near - far).abs() <= 1e-3 * scale;
            if smooth && near.is_finite() && (near - tangent[i]).abs() > tolerance * scale {
                return Err(format!("the tangent of result {i} is {}, but differences give {near}", tangent[i]));
            }
        }
        Ok(())
    }
}

/// What formulas say of operations and of values saved is what the interpreter counts; where they depend on data, at least that.
fn formulas_hold((program, id): (&Program, FunctionId), cost: &Cost, args: &[Value]) -> Result<(), String> {
    let f = program.function(id);
    let sizes = bind::sizes(program, id, args).map_err(|e| e.message)?;
    let integer = |v: Var| match &args[f.params.iter().position(|p| *p == v)?] {
        Value::Scalar(Lit::I64(n)) => Some(*n),
        _ => None,
    };
    let value = |v: Var| sizes.get(&v).copied().or_else(|| integer(v));
    let (_, counts, memory) = interpret::call_measured(program, id, args).map_err(|f| f.message)?;
    let counted = [("additions", &cost.additions, counts.additions), ("multiplications", &cost.multiplications, counts.multiplications)];
    let rest = [("calls", &cost.calls, counts.calls), ("values saved", &cost.saved, memory.saved)];
    for (name, formula, count) in counted.into_iter().chain(rest) {
        let exact = if name == "values saved" { cost.saved_exact } else { cost.exact };
        // A `while` loop counts as one round.
        if !exact {
            continue;
        }
        // A formula of data has no value by sizes alone.
        let Some(said) = formula.evaluate(&value) else { continue };
        if said != count as i64 {
            let formula = formula.display(&program.vars);
            return Err(format!("{count} {name} are counted, but the formula {formula} gives {said}\n{}", print_function(program, id)));
        }
    }
    Ok(())
}

/// How often annotations have steps run again, all loops of an expression together.
fn levels_of_blocks(exp: &Exp, inside: bool) -> u64 {
    let mut levels = 0;
    if let Exp::Loop(l) = exp {
        let level = |(annotation, number): &(Annotation, Size)| match annotation {
            Annotation::Checkpoint => 1,
            // A depth that is known only when the program runs is two.
            Annotation::Stripmine => number.as_constant().map_or(1, |depth| depth as u64 - 1),
            Annotation::Bound => 0,
        };
        levels += l.annotations.iter().map(level).sum::<u64>();
        // Nothing of such a loop is kept for the way back of a loop around: it runs once more.
        levels += (levels > 0 && inside) as u64;
    }
    let inside = inside || matches!(exp, Exp::For(..) | Exp::Sum(..) | Exp::Reduce(..) | Exp::History(_) | Exp::Loop(_));
    exp.for_each_child(&mut |e| levels += levels_of_blocks(e, inside));
    levels
}

fn has_product(exp: &Exp) -> bool {
    let mut found = matches!(exp, Exp::Reduce(Reduction::Prod, ..));
    exp.for_each_child(&mut |e| found = found || has_product(e));
    found
}

fn parts(value: &Value) -> Result<Vec<Value>, String> {
    match value {
        Value::Tuple(parts) => Ok(parts.clone()),
        _ => Err("several adjoints are a tuple".to_string()),
    }
}
