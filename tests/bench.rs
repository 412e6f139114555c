//! The programs of `bench/` are right: at small sizes their derivatives are those of differences, forward and reverse mode
//! agree, and native code computes what the interpreter does. How fast they are is for `bench/run` to say.

mod folder;

use folder::Folder;
use std::path::Path;

/// Folder, function, arguments, and what it is differentiated by: all that there is, if nothing.
const CALLS: &[(&str, &str, &str, &str)] = &[
    ("gmm", "gmm", "alpha=random(3) mu=random(3,2) icf=random(3,3) x=random(5,2) gamma=1.5 m=2", "alpha,mu,icf"),
    ("ba", "residuals", "cams=random(2,11) points=ones(3,3) w=random(4) obs=[[0,1],[1,2],[0,0],[1,1]] feats=random(4,2)", "cams,points,w"),
    ("lstm", "loss", "main=random(2,2,4,3) extra=random(3,3) state=random(2,2,3) seq=random(4,3)", "main,extra"),
    (
        "hand",
        "errors",
        "theta=random(26) parent=[-1,0,1,2] base=random(4,4,4) inverse=random(4,4,4) rest=random(5,4) weight=random(5,4) corr=[0,3] points=random(2,3)",
        "theta",
    ),
    (
        "hand",
        "triangle_errors",
        "us=random(2,2) theta=random(26) parent=[-1,0,1,2] base=random(4,4,4) inverse=random(4,4,4) rest=random(5,4) weight=random(5,4) triangles=[[0,1,2],[2,3,4]] corr=[1,0] points=random(2,3)",
        "us,theta",
    ),
    ("trmv", "full", "L=random(4,4) x=random(4)", ""),
    ("trmv", "packed", "L=random(10) x=random(4)", ""),
    ("mlp", "loss", "W1=random(4,3) b1=random(4) W2=random(2,4) b2=random(2) X=random(5,3) class=[0,1,1,0,1]", "W1,b1,W2,b2"),
    ("dot", "dot", "x=random(5) y=random(5)", ""),
    ("max", "largest", "x=random(5)", ""),
    ("add", "add", "x=random(3) y=random(3)", ""),
    ("scale", "scale", "x=random(3) s=2.5", ""),
    ("nnmf", "loss", "A=ones(3,4) W=ones(3,2) H=ones(2,4)", "W,H"),
    ("ba_projection", "project", "cam=random(11) X=random(3,3)", ""),
    ("matmul", "matmul", "A=random(3,4) B=random(4,2)", ""),
    ("convolution", "loss", "x=random(2,5,4) filter=random(3,2,3,2) bias=random(3)", ""),
    ("softmax", "loss", "W=random(3,4) b=random(3) X=random(5,4) class=[0,2,1,1,0]", "W,b"),
    ("kmeans", "cost", "P=random(6,2) C=random(3,2)", ""),
    ("nbody", "energy", "x=random(4,3) mass=ones(4)", ""),
    ("stencil", "misfit", "u=random(4,5) rate=0.2 seen=random(4,5) steps=3", "u,rate"),
];

fn words<'a>(command: &'a str, file: &'a str, function: &'a str, arguments: &'a str) -> Vec<&'a str> {
    [command, file, function].into_iter().chain(arguments.split(' ')).collect()
}

#[test]
fn derivatives_are_right() {
    let f = Folder::with("");
    for (folder, function, arguments, wrt) in CALLS {
        let file = format!("{}/bench/{folder}/{folder}.iv", env!("CARGO_MANIFEST_DIR"));
        let mut call = words("check-grad", &file, function, arguments);
        if !wrt.is_empty() {
            call.extend(["--wrt", wrt]);
        }
        let checked = f.run(&call);
        assert_eq!(checked.code, 0, "{folder} {function}: {}{}", checked.out, checked.err);
    }
}

#[test]
fn functions_that_are_derivatives_are_right() {
    let f = Folder::with("");
    let hand = CALLS.iter().find(|c| c.1 == "triangle_errors").unwrap().2;
    for (folder, function, arguments) in [("hand", "triangle_jacobian", hand), ("kmeans", "newton", "P=random(6,2) C=random(3,2)")] {
        let file = format!("{}/bench/{folder}/{folder}.iv", env!("CARGO_MANIFEST_DIR"));
        let call = |target| {
            let mut call = words("run", &file, function, arguments);
            call.extend(["--json", "--strict", "--target", target]);
            f.run(&call).json()
        };
        assert_eq!(call("c"), call("interpret"), "{folder} {function}");
    }
}

#[test]
fn every_program_is_checked() {
    for entry in std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("bench")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.join(format!("{name}.iv")).exists() {
            assert!(CALLS.iter().any(|(folder, ..)| *folder == name), "bench/{name} is not in the list of this test");
        }
    }
}
