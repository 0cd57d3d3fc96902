//! A question about known fields becomes a plan: what is taken from a record, and what becomes of it.

use sqlparser::ast::{Expr, FunctionArg, FunctionArgExpr, FunctionArguments};

use ftlab_core::{Error, Result};

use crate::record::{Form, Pick};

use super::scope::{Fields, Scope, Side, place_of};
use super::{Aggregate, Column, Kind, Plan, Question, Shows, numbers, unsupported, whole};

/// Gives the fields of a question their places; `joined` are form and names of the joined file's fields.
pub fn bind(question: &Question, own: Fields<'_>, joined: Option<Fields<'_>>) -> Result<Plan> {
    let form = own.form;
    if question.explode.is_some() && *form != Form::Text {
        return Err(Error::input(format!(
            "words and links are made of lines of text, and `{}` is read as {}; expected --format text",
            question.files,
            form.name()
        )));
    }
    let mut scope = Scope {
        question,
        own,
        joined,
        picks: Vec::new(),
        joined_picks: Vec::new(),
    };
    let every = question.items.iter().map(|(item, _)| item);
    let every = every.chain(&question.condition).chain(&question.groups);
    // A first pass finds all fields, so that slots can stand in the order of fields.
    for expr in every {
        let expr = question.named(expr, &scope);
        let within = numbers::within(expr)?;
        for of in within.iter().flatten() {
            scope.compile(of)?;
        }
        if within.is_empty() {
            scope.compile(expr)?;
        }
    }
    let mut sides = None;
    if let Some(join) = &question.join {
        let left = scope.sides(&join.left)?;
        let right = scope.sides(&join.right)?;
        let (ours, theirs) = match (&left[..], &right[..]) {
            ([Side::Sampled], [Side::Joined]) => (&join.left, &join.right),
            ([Side::Joined], [Side::Sampled]) => (&join.right, &join.left),
            _ => return Err(Error::input("join: expected a field of each side behind `on`")),
        };
        scope.compile(ours)?;
        scope.compile(theirs)?;
        sides = Some((ours, theirs));
    }
    scope.picks.sort_by_key(|pick| match pick {
        Pick::Field(number) => *number,
        _ => 0,
    });
    let mut plan = Plan {
        picks: Vec::new(),
        joined: Vec::new(),
        keys: None,
        condition: question
            .condition
            .as_ref()
            .map(|expr| scope.compile(expr))
            .transpose()?,
        groups: Vec::new(),
        aggregates: Vec::new(),
        formulas: Vec::new(),
        quantiles: Vec::new(),
        columns: Vec::new(),
        orders: Vec::new(),
        limit: question.limit,
        singles: Vec::new(),
    };
    if let Some((ours, theirs)) = sides {
        plan.keys = Some((scope.compile(ours)?, scope.compile(theirs)?));
    }
    let groups: Vec<&Expr> = question
        .groups
        .iter()
        .map(|expr| question.named(expr, &scope))
        .collect();
    for group in &groups {
        if !numbers::within(group)?.is_empty() {
            return Err(Error::input(format!(
                "group by {group}: expected an expression without count, sum, avg or proportion"
            )));
        }
        plan.groups.push(scope.compile(group)?);
    }
    for (item, alias) in &question.items {
        let shows = match aggregate(item)? {
            Some((kind, of)) => {
                let of = of.map(|of| scope.compile(of)).transpose()?;
                plan.aggregates.push(Aggregate { kind, of });
                Shows::Aggregate(plan.aggregates.len() - 1)
            }
            None => match group_of(item, &mut scope, &plan)? {
                Some(group) => Shows::Group(group),
                None => {
                    refuse_hidden(item, alias.as_ref(), &groups)?;
                    numbers::bind(item, &mut scope, &mut plan)?
                }
            },
        };
        plan.columns.push(Column {
            name: alias.clone().unwrap_or_else(|| item.to_string()),
            shows,
        });
    }
    if plan.aggregates.is_empty() && plan.quantiles.is_empty() {
        return Err(Error::input(
            "query: expected at least one of count, sum, avg, proportion, median and quantile",
        ));
    }
    for (by, falls) in &question.orders {
        let place = match by {
            Expr::Value(_) => Some(whole(by, "order by")?)
                .filter(|&number| (1..=plan.columns.len()).contains(&number))
                .map(|n| n - 1),
            // An alias goes before a column of its name, as in SQL.
            by => {
                let named = place_of(plan.columns.iter().map(|column| &column.name[..]), &named(by));
                named.or_else(|| question.items.iter().position(|(item, _)| is_same(item, by, form)))
            }
        };
        let Some(place) = place else {
            return Err(Error::input(format!("order by {by}: expected an item of the select")));
        };
        plan.orders.push((place, *falls));
    }
    plan.picks = scope.picks;
    plan.joined = scope.joined_picks;
    Ok(plan)
}

/// Refuses an item that `group by` seems to name, but for a column of the same name.
fn refuse_hidden(item: &Expr, alias: Option<&String>, groups: &[&Expr]) -> Result<()> {
    let Some(alias) = alias.filter(|alias| groups.iter().any(|group| named(group).eq_ignore_ascii_case(alias))) else {
        return Ok(());
    };
    if !numbers::within(item)?.is_empty() {
        return Ok(());
    }
    Err(Error::input(format!(
        "`{item}`: `group by {alias}` is by the column of that name, expected `group by {item}`"
    )))
}

impl Question {
    /// What an alias or the number of an item stands for. A column goes before an alias of its name, as in SQL.
    fn named<'a>(&'a self, expr: &'a Expr, scope: &Scope<'_>) -> &'a Expr {
        match expr {
            Expr::Identifier(name) if scope.has_column(name) => expr,
            Expr::Identifier(name) => {
                let others = self.items.iter().filter(|(item, _)| item.to_string() != name.value);
                let others: Vec<_> = others
                    .filter_map(|(item, alias)| Some((item, alias.as_deref()?)))
                    .collect();
                let found = place_of(others.iter().map(|&(_, alias)| alias), &name.value);
                found.map_or(expr, |at| others[at].0)
            }
            Expr::Value(_) => {
                let number = expr.to_string().parse::<usize>().ok().filter(|&number| number > 0);
                number
                    .and_then(|number| self.items.get(number - 1))
                    .map_or(expr, |(item, _)| item)
            }
            expr => expr,
        }
    }
}

/// The number of the group that an item is, if it is one.
fn group_of(item: &Expr, scope: &mut Scope<'_>, plan: &Plan) -> Result<Option<usize>> {
    if !numbers::within(item)?.is_empty() {
        return Ok(None);
    }
    let item = scope.compile(item)?;
    Ok(plan.groups.iter().position(|group| *group == item))
}

/// The name that an expression has as a column.
fn named(expr: &Expr) -> String {
    match expr {
        Expr::Identifier(ident) => ident.value.clone(),
        expr => expr.to_string(),
    }
}

/// Whether two expressions are written alike, but for case where names of fields are those of any. Comparing the trees would compile the comparison of all of SQL's.
fn is_same(one: &Expr, other: &Expr, form: &Form) -> bool {
    let (one, other) = (one.to_string(), other.to_string());
    // Texts in quotes are every second piece.
    let pieces = || one.split('\'').zip(other.split('\'')).enumerate();
    one == other
        || *form != Form::Json
            && one.len() == other.len()
            && pieces().all(|(at, (one, other))| {
                if at % 2 == 0 {
                    one.eq_ignore_ascii_case(other)
                } else {
                    one == other
                }
            })
}

/// If an item is an aggregate: which, and of what.
pub(super) fn aggregate(expr: &Expr) -> Result<Option<(Kind, Option<&Expr>)>> {
    let Expr::Function(function) = expr else {
        return Ok(None);
    };
    let kind = match function.name.to_string().to_ascii_lowercase().as_str() {
        "count" => Kind::Count,
        "sum" => Kind::Sum,
        "avg" | "mean" => Kind::Average,
        "proportion" => Kind::Proportion,
        extreme @ ("min" | "max") => {
            let (most, p) = if extreme == "min" {
                ("smallest", "0.01")
            } else {
                ("largest", "0.99")
            };
            return Err(Error::input(format!(
                "`{expr}`: the {most} that was read says nothing of what was not; expected quantile(X, {p}), or another share"
            )));
        }
        _ => return Ok(None),
    };
    if function.over.is_some() || function.filter.is_some() {
        return Err(unsupported(expr));
    }
    let FunctionArguments::List(list) = &function.args else {
        return Err(unsupported(expr));
    };
    if list.duplicate_treatment.is_some() || !list.clauses.is_empty() {
        return Err(Error::input(format!(
            "`{expr}`: a sample does not tell how many are distinct; expected count, sum, avg or proportion of all"
        )));
    }
    match &list.args[..] {
        [FunctionArg::Unnamed(FunctionArgExpr::Wildcard)] if kind == Kind::Count => Ok(Some((kind, None))),
        [FunctionArg::Unnamed(FunctionArgExpr::Expr(of))] => Ok(Some((kind, Some(of)))),
        _ => Err(Error::input(format!(
            "`{expr}`: expected one expression within {}",
            kind.name()
        ))),
    }
}
