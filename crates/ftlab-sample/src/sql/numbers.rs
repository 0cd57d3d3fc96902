//! Items that are made of aggregates, and quantiles.

use sqlparser::ast::{
    BinaryOperator, Expr, FunctionArg, FunctionArgExpr, FunctionArguments, UnaryOperator, Value as Literal,
};

use ftlab_core::{Error, Result};

use crate::expression::{Expression, Operator};
use crate::formula::{Formula, Function};

use super::binding::aggregate;
use super::scope::Scope;
use super::{Aggregate, Kind, Plan, Quantile, Shows, unsupported};

/// What the aggregates and quantiles of an item are of, none of `count(*)`; nothing, if there are none in it.
pub(super) fn within(expr: &Expr) -> Result<Vec<Option<&Expr>>> {
    if let Some((_, of)) = aggregate(expr)? {
        return Ok(vec![of]);
    }
    if let Some((of, _)) = quantile(expr)? {
        return Ok(vec![Some(of)]);
    }
    Ok(match expr {
        Expr::Nested(inside) | Expr::UnaryOp { expr: inside, .. } => within(inside)?,
        Expr::BinaryOp { left, right, .. } => {
            let mut all = within(left)?;
            all.extend(within(right)?);
            all
        }
        Expr::Function(_) => match function(expr) {
            Some((_, of)) => within(of)?,
            None => Vec::new(),
        },
        _ => Vec::new(),
    })
}

/// Gives an item that is neither a group nor an aggregate its place.
pub(super) fn bind(item: &Expr, scope: &mut Scope<'_>, plan: &mut Plan) -> Result<Shows> {
    if let Some((of, p)) = quantile(item)? {
        let of = scope.compile(of)?;
        plan.quantiles.push(Quantile { of, p });
        return Ok(Shows::Quantile(plan.quantiles.len() - 1));
    }
    if within(item)?.is_empty() {
        return Err(Error::input(format!(
            "`{item}`: expected in `group by`, or within count, sum, avg or proportion"
        )));
    }
    let formula = formula(item, scope, &mut plan.aggregates)?;
    plan.formulas.push(formula);
    Ok(Shows::Formula(plan.formulas.len() - 1))
}

fn formula(expr: &Expr, scope: &mut Scope<'_>, aggregates: &mut Vec<Aggregate>) -> Result<Formula> {
    if let Some((kind, of)) = aggregate(expr)? {
        let of = of.map(|of| scope.compile(of)).transpose()?;
        let mut total = |kind, of| Box::new(Formula::Total(place(aggregates, Aggregate { kind, of })));
        return Ok(match kind {
            Kind::Count | Kind::Sum => *total(kind, of),
            Kind::Average => {
                let (sum, count) = (total(Kind::Sum, of.clone()), total(Kind::Count, of));
                Formula::Compute(Operator::Divide, sum, count)
            }
            Kind::Proportion => {
                // Twice the opposite of a condition is its truth, whatever it was written as.
                let truth = of.map(|of| Expression::Not(Box::new(Expression::Not(Box::new(of)))));
                let (sum, count) = (total(Kind::Sum, truth.clone()), total(Kind::Count, truth));
                Formula::Compute(Operator::Divide, sum, count)
            }
        });
    }
    if quantile(expr)?.is_some() {
        return Err(Error::input(format!(
            "`{expr}`: expected as an item of its own, not within an expression"
        )));
    }
    let mut boxed = |expr: &Expr| Ok(Box::new(formula(expr, scope, aggregates)?));
    match expr {
        Expr::Nested(inside) => Ok(*boxed(inside)?),
        Expr::Value(value) => match &value.value {
            Literal::Number(text, _) => text
                .parse()
                .map(Formula::Number)
                .map_err(|_| Error::input(format!("`{text}`: expected a number"))),
            _ => Err(Error::input(format!("`{expr}`: expected a number"))),
        },
        Expr::UnaryOp { op, expr: inside } => match op {
            UnaryOperator::Plus => Ok(*boxed(inside)?),
            UnaryOperator::Minus => {
                let zero = Box::new(Formula::Number(0.0));
                Ok(Formula::Compute(Operator::Subtract, zero, boxed(inside)?))
            }
            _ => Err(unsupported(expr)),
        },
        Expr::BinaryOp { left, op, right } => {
            let how = match op {
                BinaryOperator::Plus => Operator::Add,
                BinaryOperator::Minus => Operator::Subtract,
                BinaryOperator::Multiply => Operator::Multiply,
                BinaryOperator::Divide => Operator::Divide,
                _ => {
                    return Err(Error::input(format!(
                        "`{expr}`: expected + - * or / between aggregates"
                    )));
                }
            };
            Ok(Formula::Compute(how, boxed(left)?, boxed(right)?))
        }
        Expr::Function(_) => match function(expr) {
            Some((function, of)) => Ok(Formula::Call(function, boxed(of)?)),
            None => Err(Error::input(format!(
                "`{expr}`: expected within count, sum, avg or proportion, or one of {} of these",
                Function::NAMES.join(", ")
            ))),
        },
        _ => Err(Error::input(format!(
            "`{expr}`: expected within count, sum, avg or proportion, or a number"
        ))),
    }
}

/// The number of an aggregate, which is entered if it is not there.
fn place(aggregates: &mut Vec<Aggregate>, wanted: Aggregate) -> usize {
    let known = aggregates.iter().position(|aggregate| *aggregate == wanted);
    known.unwrap_or_else(|| {
        aggregates.push(wanted);
        aggregates.len() - 1
    })
}

/// A function of a number, and of what.
fn function(expr: &Expr) -> Option<(Function, &Expr)> {
    let (name, arguments) = call(expr)?;
    match (Function::parse(&name), &arguments[..]) {
        (Some(function), [of]) => Some((function, of)),
        _ => None,
    }
}

/// If an item is a quantile: of what, and which.
fn quantile(expr: &Expr) -> Result<Option<(&Expr, f64)>> {
    let Some((name, arguments)) = call(expr) else {
        return Ok(None);
    };
    match (name.as_str(), &arguments[..]) {
        ("median", [of]) => Ok(Some((of, 0.5))),
        ("median", _) => Err(Error::input(format!("`{expr}`: expected one expression within median"))),
        ("quantile", [of, p]) => {
            let p_as_number = p.to_string().parse().ok().filter(|p: &f64| *p > 0.0 && *p < 1.0);
            let wrong = || Error::input(format!("`{expr}`: {p}, expected a share between 0 and 1, such as 0.99"));
            Ok(Some((of, p_as_number.ok_or_else(wrong)?)))
        }
        ("quantile", _) => Err(Error::input(format!("`{expr}`: expected quantile(X, SHARE)"))),
        _ => Ok(None),
    }
}

/// Name and arguments of a plain call; a call with more to it is none.
fn call(expr: &Expr) -> Option<(String, Vec<&Expr>)> {
    let Expr::Function(function) = expr else {
        return None;
    };
    let FunctionArguments::List(list) = &function.args else {
        return None;
    };
    if function.over.is_some()
        || function.filter.is_some()
        || list.duplicate_treatment.is_some()
        || !list.clauses.is_empty()
    {
        return None;
    }
    let plain = |argument| match argument {
        &FunctionArg::Unnamed(FunctionArgExpr::Expr(ref expr)) => Some(expr),
        _ => None,
    };
    let arguments: Option<Vec<&Expr>> = list.args.iter().map(plain).collect();
    Some((function.name.to_string().to_ascii_lowercase(), arguments?))
}
