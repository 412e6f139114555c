mod generator;
mod harness;
use generator::{grow::grow, matrix::Matrix};

#[test]
fn parse_all() {
    let mut matrix = Matrix::new();
    let mut failures = 0;
    for seed in 0..600 {
        let p = grow(seed, &matrix);
        matrix.add(&p);
        let text = p.text();
        let bad = match harness::load(&text) {
            Err(e) => Some(e),
            Ok(program) => harness::sound(&program).err(),
        };
        if let Some(e) = bad {
            failures += 1;
            let small = generator::shrink::shrink(&p, 300, |q| match harness::load(&q.text()) {
                Err(_) => harness::load(&text).is_err(),
                Ok(program) => harness::sound(&program).is_err(),
            });
            if failures < 8 {
                let e = match harness::load(&small.text()) {
                    Err(e) => e,
                    Ok(q) => harness::sound(&q).unwrap_err(),
                };
                println!("seed {seed}\n{}\n{e}\n", small.text());
            }
        }
        if matrix.empty().is_empty() {
            println!("{seed} programs");
            break;
        }
    }
    assert_eq!(failures, 0);
}
