//! The part of SQL that is answered.
//!
//! # Model
//! ```text
//! select ITEM, ... from 'FILES' [alias] [join 'FILE' [alias] on FIELD = FIELD]
//!   [where CONDITION] [group by EXPRESSION, ...] [order by ITEM [desc], ...] [limit N]
//! ```
//! An item is an expression that is grouped by, `count(*)`, `count(X)`, `sum(X)`, `avg(X)` or `proportion(CONDITION)`, each with or without `as NAME`. `from words('FILES')` makes
//! a row of each word of a line (`word`), `from links('FILES')` of each `[[link]]` (`target`). Expressions have fields, numbers, texts, `+ - * / %`, comparisons, `and or not`, `in`,
//! `between`, `like`, `is null`, `lower`, `upper`, `length`, `substr(X, FROM, COUNT)`, `field(X, N)` (the n-th piece between white space) and
//! `cast(X as double)`. The file of `join` is read whole; each of its rows with the same value makes a row.
//!
//! # Not modelled
//! Everything else of SQL: subqueries, windows, `having`, `distinct`, outer joins, two sampled sides of a join.
//!
//! # Errors
//! What does not parse, with line and column; what is not among the above, by name.

use sqlparser::ast::{
    BinaryOperator, CastKind, DataType, Distinct, Expr, FunctionArg, FunctionArgExpr, FunctionArguments, GroupByExpr,
    Ident, InTarget, JoinConstraint, JoinOperator, LimitClause, ObjectName, OrderByKind, OrderBySort, Query, Select,
    SelectItem, SetExpr, Statement, TableFactor, UnaryOperator, Value as Literal,
};
use sqlparser::dialect::GenericDialect;
use sqlparser::parser::Parser;

use ftlab_core::error::nearest;
use ftlab_core::{Error, Result};

use crate::expression::{Comparison, Expression, Operator};
use crate::record::{Explode, Form, Pick};

/// A parsed question, before the fields of its files are known.
#[derive(Debug)]
pub struct Question {
    pub files: String,
    pub explode: Option<Explode>,
    alias: Option<String>,
    pub join: Option<Join>,
    items: Vec<(Expr, Option<String>)>,
    condition: Option<Expr>,
    groups: Vec<Expr>,
    orders: Vec<(Expr, bool)>,
    pub limit: Option<usize>,
}

#[derive(Debug)]
pub struct Join {
    pub file: String,
    alias: Option<String>,
    left: Expr,
    right: Expr,
}

/// A question whose fields have places.
#[derive(Debug)]
pub struct Plan {
    /// What is taken from a record of the sampled files; slot by slot.
    pub picks: Vec<Pick>,
    /// Slots behind the picks that hold fields of the joined file: their numbers in it.
    pub joined: Vec<Pick>,
    /// What a record and a row of the joined file have alike.
    pub keys: Option<(Expression, Expression)>,
    pub condition: Option<Expression>,
    pub groups: Vec<Expression>,
    pub aggregates: Vec<Aggregate>,
    pub columns: Vec<Column>,
    /// Columns that rows are sorted by, and whether from the largest on.
    pub orders: Vec<(usize, bool)>,
    pub limit: Option<usize>,
}

#[derive(Debug, Clone)]
pub struct Aggregate {
    pub kind: Kind,
    /// None of `count(*)`.
    pub of: Option<Expression>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Count,
    Sum,
    Average,
    Proportion,
}

impl Kind {
    /// Whether it is the ratio of two totals.
    pub fn is_ratio(self) -> bool {
        matches!(self, Kind::Average | Kind::Proportion)
    }

    pub fn name(self) -> &'static str {
        match self {
            Kind::Count => "count",
            Kind::Sum => "sum",
            Kind::Average => "avg",
            Kind::Proportion => "proportion",
        }
    }
}

/// What a column of the answer shows.
#[derive(Debug, Clone)]
pub struct Column {
    pub name: String,
    pub shows: Shows,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shows {
    Group(usize),
    Aggregate(usize),
}

fn unsupported(what: impl std::fmt::Display) -> Error {
    Error::input(format!(
        "`{what}`: not among what is sampled; expected select ... from 'FILES' [join 'FILE' on a = b] [where ...] [group by ...] [order by ...] [limit N]"
    ))
}

/// Bytes of a query. Each operator of a chain is a level of the expression, and levels of a longer one would fill the stack.
const LONGEST_QUERY: usize = 8192;

/// Reads a question.
pub fn parse(text: &str) -> Result<Question> {
    if text.len() > LONGEST_QUERY {
        return Err(Error::input(format!(
            "query of {} bytes: expected at most {LONGEST_QUERY}",
            text.len()
        )));
    }
    let mut statements = Parser::parse_sql(&GenericDialect {}, text).map_err(|e| {
        Error::input(format!(
            "query: {}",
            e.to_string().trim_start_matches("sql parser error: ")
        ))
    })?;
    let (Some(Statement::Query(query)), true) = (statements.pop(), statements.is_empty()) else {
        return Err(Error::input("query: expected one `select`"));
    };
    let Query {
        with,
        body,
        order_by,
        limit_clause,
        fetch,
        locks,
        for_clause,
        settings,
        format_clause,
        pipe_operators,
    } = *query;
    if let Some(with) = with {
        return Err(unsupported(with));
    }
    if fetch.is_some()
        || !locks.is_empty()
        || for_clause.is_some()
        || settings.is_some()
        || format_clause.is_some()
        || !pipe_operators.is_empty()
    {
        return Err(unsupported("clauses behind limit"));
    }
    let SetExpr::Select(select) = *body else {
        return Err(unsupported(body));
    };
    let select: Select = *select;
    refuse_clauses(&select)?;
    let Select {
        projection,
        from,
        selection,
        group_by,
        ..
    } = select;
    let Ok([from]) = <[_; 1]>::try_from(from) else {
        return Err(Error::input(
            "query: expected one file or pattern behind `from`, and other files behind `join`",
        ));
    };
    let (files, explode, alias) = table(&from.relation)?;
    let mut joins = from.joins.into_iter();
    let join = match (joins.next(), joins.next()) {
        (None, _) => None,
        (Some(join), None) => Some(joined(join)?),
        (Some(_), Some(_)) => return Err(Error::input("query: expected at most one `join`")),
    };
    let mut items = Vec::new();
    for item in projection {
        items.push(match item {
            SelectItem::UnnamedExpr(of) => (of, None),
            SelectItem::ExprWithAlias { expr, alias } => (expr, Some(alias.value)),
            other => return Err(unsupported(other)),
        });
    }
    let groups = match group_by {
        GroupByExpr::Expressions(groups, modifiers) if modifiers.is_empty() => groups,
        other => return Err(unsupported(other)),
    };
    let mut orders = Vec::new();
    if let Some(order) = order_by {
        let OrderByKind::Expressions(by) = order.kind else {
            return Err(unsupported("order by all"));
        };
        for one in by {
            let falls = match &one.options.sort {
                None | Some(OrderBySort::Asc) => false,
                Some(OrderBySort::Desc) => true,
                Some(_) => return Err(unsupported(one)),
            };
            orders.push((one.expr, falls));
        }
    }
    let limit = match &limit_clause {
        None => None,
        Some(LimitClause::LimitOffset {
            limit: Some(limit),
            offset: None,
            limit_by,
        }) if limit_by.is_empty() => Some(whole(limit, "limit")?),
        Some(other) => return Err(unsupported(other.to_string().trim())),
    };
    Ok(Question {
        files,
        explode,
        alias,
        join,
        items,
        condition: selection,
        groups,
        orders,
        limit,
    })
}

fn refuse_clauses(select: &Select) -> Result<()> {
    if let Some(having) = &select.having {
        return Err(unsupported(format!("having {having}")));
    }
    if !matches!(select.distinct, None | Some(Distinct::All)) {
        return Err(unsupported("select distinct"));
    }
    let others = select.top.is_some()
        || select.into.is_some()
        || select.exclude.is_some()
        || select.prewhere.is_some()
        || select.qualify.is_some()
        || select.value_table_mode.is_some()
        || !select.lateral_views.is_empty()
        || !select.connect_by.is_empty()
        || !select.cluster_by.is_empty()
        || !select.distribute_by.is_empty()
        || !select.sort_by.is_empty()
        || !select.named_window.is_empty();
    if others { Err(unsupported(select)) } else { Ok(()) }
}

fn joined(join: sqlparser::ast::Join) -> Result<Join> {
    let (file, alias) = match table(&join.relation)? {
        (file, None, alias) => (file, alias),
        _ => return Err(unsupported(&join.relation)),
    };
    let shown = join.to_string();
    let on = match join.join_operator {
        JoinOperator::Join(on) | JoinOperator::Inner(on) if !join.global => on,
        _ => return Err(unsupported(shown.trim())),
    };
    let JoinConstraint::On(Expr::BinaryOp {
        left,
        op: BinaryOperator::Eq,
        right,
    }) = on
    else {
        return Err(Error::input("join: expected `on FIELD = FIELD`"));
    };
    Ok(Join {
        file,
        alias,
        left: *left,
        right: *right,
    })
}

/// Files, what is made of their lines, and another name.
fn table(factor: &TableFactor) -> Result<(String, Option<Explode>, Option<String>)> {
    let TableFactor::Table {
        name,
        alias,
        args,
        sample,
        version,
        ..
    } = factor
    else {
        return Err(unsupported(factor));
    };
    if sample.is_some() || version.is_some() {
        return Err(Error::input(
            "query: expected the size of the sample by --ratio, --error or --within, not `tablesample`",
        ));
    }
    let alias = alias.as_ref().map(|alias| alias.name.value.clone());
    let Some(args) = args else {
        let [part] = &name.0[..] else {
            return Err(Error::input(format!(
                "`{name}`: expected a file or pattern in quotes, such as 'logs/*.csv'"
            )));
        };
        let Some(ident) = part.as_ident() else {
            return Err(unsupported(name));
        };
        return Ok((ident.value.clone(), None, alias));
    };
    let explode = match name.to_string().to_ascii_lowercase().as_str() {
        "words" => Explode::Words,
        "links" => Explode::Links,
        _ => {
            return Err(ftlab_core::error::unknown(
                "function behind `from`",
                &name.to_string(),
                &["words", "links"],
            ));
        }
    };
    match &args.args[..] {
        [FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Value(value)))] => match &value.value {
            Literal::SingleQuotedString(file) | Literal::DoubleQuotedString(file) => {
                Ok((file.clone(), Some(explode), alias))
            }
            _ => Err(Error::input(format!("{name}: expected files in quotes"))),
        },
        [FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Identifier(file)))] => {
            Ok((file.value.clone(), Some(explode), alias))
        }
        _ => Err(Error::input(format!("{name}: expected files in quotes"))),
    }
}

fn whole(expr: &Expr, what: &str) -> Result<usize> {
    expr.to_string()
        .parse()
        .map_err(|_| Error::input(format!("{what} {expr}: expected a whole number")))
}

/// What names of fields mean.
struct Scope<'a> {
    question: &'a Question,
    form: &'a Form,
    columns: &'a [String],
    joined: Option<(&'a Form, &'a [String])>,
    picks: Vec<Pick>,
    joined_picks: Vec<Pick>,
}

/// A field of which side.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Side {
    Sampled,
    Joined,
}

/// Gives the fields of a question their places; `joined` are form and names of the joined file's fields.
pub fn bind(question: &Question, form: &Form, columns: &[String], joined: Option<(&Form, &[String])>) -> Result<Plan> {
    if question.explode.is_some() && *form != Form::Text {
        return Err(Error::input(format!(
            "words and links are made of lines of text, and `{}` is read as {}; expected --format text",
            question.files,
            form.name()
        )));
    }
    let mut scope = Scope {
        question,
        form,
        columns,
        joined,
        picks: Vec::new(),
        joined_picks: Vec::new(),
    };
    let every = question.items.iter().map(|(item, _)| item);
    let every = every.chain(&question.condition).chain(&question.groups);
    // A first pass finds all fields, so that slots can stand in the order of fields.
    for expr in every {
        let expr = question.named(expr);
        match aggregate(expr)? {
            Some((_, None)) => {}
            Some((_, Some(of))) => {
                scope.compile(of)?;
            }
            None => {
                scope.compile(expr)?;
            }
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
        columns: Vec::new(),
        orders: Vec::new(),
        limit: question.limit,
    };
    if let Some((ours, theirs)) = sides {
        plan.keys = Some((scope.compile(ours)?, scope.compile(theirs)?));
    }
    let groups: Vec<&Expr> = question.groups.iter().map(|expr| question.named(expr)).collect();
    for group in &groups {
        if aggregate(group)?.is_some() {
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
            None => match groups.iter().position(|group| is_same(group, item)) {
                Some(group) => Shows::Group(group),
                None => {
                    return Err(Error::input(format!(
                        "`{item}`: expected in `group by`, or within count, sum, avg or proportion"
                    )));
                }
            },
        };
        plan.columns.push(Column {
            name: alias.clone().unwrap_or_else(|| item.to_string()),
            shows,
        });
    }
    if plan.aggregates.is_empty() {
        return Err(Error::input(
            "query: expected at least one of count, sum, avg and proportion",
        ));
    }
    for (by, falls) in &question.orders {
        let place = match by {
            Expr::Value(_) => Some(whole(by, "order by")?)
                .filter(|&number| (1..=plan.columns.len()).contains(&number))
                .map(|n| n - 1),
            by => question
                .items
                .iter()
                .zip(&plan.columns)
                .position(|((item, _), column)| is_same(item, by) || column.name == by.to_string()),
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

impl Question {
    /// What an alias or the number of an item stands for.
    fn named<'a>(&'a self, expr: &'a Expr) -> &'a Expr {
        match expr {
            Expr::Identifier(name) => {
                let found = self
                    .items
                    .iter()
                    .find(|(item, alias)| alias.as_ref() == Some(&name.value) && !is_same(item, expr));
                found.map_or(expr, |(item, _)| item)
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

/// Whether two expressions are written alike. Comparing the trees would compile the comparison of all of SQL's.
fn is_same(one: &Expr, other: &Expr) -> bool {
    one.to_string() == other.to_string()
}

/// If an item is an aggregate: which, and of what.
fn aggregate(expr: &Expr) -> Result<Option<(Kind, Option<&Expr>)>> {
    let Expr::Function(function) = expr else {
        return Ok(None);
    };
    let kind = match function.name.to_string().to_ascii_lowercase().as_str() {
        "count" => Kind::Count,
        "sum" => Kind::Sum,
        "avg" | "mean" => Kind::Average,
        "proportion" => Kind::Proportion,
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

impl Scope<'_> {
    /// Which sides the fields of an expression are of.
    fn sides(&self, expr: &Expr) -> Result<Vec<Side>> {
        match expr {
            Expr::Identifier(name) => Ok(vec![self.find(None, &[name])?.0]),
            Expr::CompoundIdentifier(names) => {
                let names: Vec<&Ident> = names.iter().collect();
                Ok(vec![self.find(Some(&names[0].value), &names)?.0])
            }
            Expr::Nested(inside) => self.sides(inside),
            _ => Err(Error::input(format!("on {expr}: expected a field"))),
        }
    }

    /// The side and pick of a name; `first` is what may be another name of a file.
    fn find(&self, first: Option<&String>, names: &[&Ident]) -> Result<(Side, Pick)> {
        let join = self.question.join.as_ref();
        let (sides, names): (&[Side], &[&Ident]) = match first {
            Some(first) if self.question.alias.as_ref() == Some(first) => (&[Side::Sampled], &names[1..]),
            Some(first) if join.is_some_and(|join| join.alias.as_ref() == Some(first)) => {
                (&[Side::Joined], &names[1..])
            }
            _ if join.is_some() => (&[Side::Sampled, Side::Joined], names),
            _ => (&[Side::Sampled], names),
        };
        let path: Vec<String> = names.iter().map(|name| name.value.clone()).collect();
        let mut known: Vec<&str> = Vec::new();
        let mut found = Vec::new();
        for &side in sides {
            let (form, columns) = match (side, self.joined) {
                (Side::Joined, Some(joined)) => joined,
                _ => (self.form, self.columns),
            };
            let explode = self.question.explode.filter(|_| side == Side::Sampled);
            match (form, explode) {
                (Form::Json, _) => found.push((side, Pick::Path(path.clone()))),
                (Form::Text, explode) => {
                    let column = explode.map_or("line", Explode::column);
                    known.push(column);
                    if path == [column] {
                        found.push((side, Pick::Line));
                    }
                }
                (Form::Csv { .. }, _) => {
                    known.extend(columns.iter().map(String::as_str));
                    let name = path.join(".");
                    let places = |is_it: &dyn Fn(&str) -> bool| -> Vec<usize> {
                        (0..columns.len()).filter(|&at| is_it(&columns[at])).collect()
                    };
                    let mut places_of_name = places(&|column| column == name);
                    if places_of_name.is_empty() {
                        places_of_name = places(&|column| column.eq_ignore_ascii_case(&name));
                    }
                    if let [first, second, ..] = places_of_name[..] {
                        return Err(Error::input(format!(
                            "field `{name}`: columns {} and {} are called so, expected one",
                            first + 1,
                            second + 1
                        )));
                    }
                    found.extend(places_of_name.first().map(|&at| (side, Pick::Field(at))));
                }
            }
        }
        // Objects may have any field, so that a name that the other file's header has is meant there.
        if found.iter().any(|(_, pick)| !matches!(pick, Pick::Path(_))) {
            found.retain(|(_, pick)| !matches!(pick, Pick::Path(_)));
        }
        let name = path.join(".");
        match &found[..] {
            [one] => Ok(one.clone()),
            [] => {
                let hint = nearest(&name, known.iter().copied())
                    .map_or(String::new(), |near| format!("; did you mean `{near}`?"));
                Err(Error::input(format!(
                    "unknown field `{name}`{hint} (known: {})",
                    known.join(", ")
                )))
            }
            _ => Err(Error::input(format!(
                "field `{name}`: both files have one; expected ALIAS.{name}"
            ))),
        }
    }

    fn slot(&mut self, first: Option<&String>, names: &[&Ident]) -> Result<Expression> {
        let (side, pick) = self.find(first, names)?;
        let picks = match side {
            Side::Sampled => &mut self.picks,
            Side::Joined => &mut self.joined_picks,
        };
        let at = picks.iter().position(|known| *known == pick).unwrap_or_else(|| {
            picks.push(pick);
            picks.len() - 1
        });
        // Slots of the joined file stand behind those of the sampled ones.
        let before = if side == Side::Joined { self.picks.len() } else { 0 };
        Ok(Expression::Slot(before + at))
    }

    fn compile(&mut self, expr: &Expr) -> Result<Expression> {
        let boxed = |expression: Expression| Box::new(expression);
        Ok(match expr {
            Expr::Identifier(name) => self.slot(None, &[name])?,
            Expr::CompoundIdentifier(names) => {
                let names: Vec<&Ident> = names.iter().collect();
                self.slot(Some(&names[0].value), &names)?
            }
            Expr::Nested(inside) => self.compile(inside)?,
            Expr::Value(value) => match &value.value {
                Literal::Number(text, _) => Expression::Number(
                    text.parse()
                        .map_err(|_| Error::input(format!("`{text}`: expected a number")))?,
                ),
                Literal::SingleQuotedString(text) => Expression::Text(text.clone().into_bytes()),
                Literal::Boolean(truth) => Expression::Bool(*truth),
                Literal::Null => Expression::Null,
                _ => return Err(unsupported(expr)),
            },
            Expr::UnaryOp { op, expr: inside } => {
                let inside = boxed(self.compile(inside)?);
                match op {
                    UnaryOperator::Not => Expression::Not(inside),
                    UnaryOperator::Minus => {
                        Expression::Compute(Operator::Subtract, boxed(Expression::Number(0.0)), inside)
                    }
                    UnaryOperator::Plus => *inside,
                    _ => return Err(unsupported(expr)),
                }
            }
            Expr::BinaryOp { left, op, right } => {
                let (left, right) = (boxed(self.compile(left)?), boxed(self.compile(right)?));
                let compare = |how, left, right| Expression::Compare(how, left, right);
                let compute = |how, left, right| Expression::Compute(how, left, right);
                match op {
                    BinaryOperator::And => Expression::And(left, right),
                    BinaryOperator::Or => Expression::Or(left, right),
                    BinaryOperator::Eq => compare(Comparison::Equal, left, right),
                    BinaryOperator::NotEq => compare(Comparison::Unequal, left, right),
                    BinaryOperator::Lt => compare(Comparison::Less, left, right),
                    BinaryOperator::LtEq => compare(Comparison::LessOrEqual, left, right),
                    BinaryOperator::Gt => compare(Comparison::Greater, left, right),
                    BinaryOperator::GtEq => compare(Comparison::GreaterOrEqual, left, right),
                    BinaryOperator::Plus => compute(Operator::Add, left, right),
                    BinaryOperator::Minus => compute(Operator::Subtract, left, right),
                    BinaryOperator::Multiply => compute(Operator::Multiply, left, right),
                    BinaryOperator::Divide => compute(Operator::Divide, left, right),
                    BinaryOperator::Modulo => compute(Operator::Remainder, left, right),
                    _ => return Err(unsupported(expr)),
                }
            }
            Expr::IsNull(inside) => Expression::IsNull(boxed(self.compile(inside)?)),
            Expr::IsNotNull(inside) => Expression::Not(boxed(Expression::IsNull(boxed(self.compile(inside)?)))),
            Expr::IsTrue(inside) => self.compile(inside)?,
            Expr::In {
                expr,
                target: InTarget::List(list),
                negated,
                global: false,
            } => {
                let it = self.compile(expr)?;
                let mut any = Expression::Bool(false);
                for one in list {
                    let equal = Expression::Compare(Comparison::Equal, boxed(it.clone()), boxed(self.compile(one)?));
                    any = Expression::Or(boxed(any), boxed(equal));
                }
                negate(any, *negated)
            }
            Expr::Between {
                expr,
                negated,
                low,
                high,
            } => {
                let it = self.compile(expr)?;
                let low = Expression::Compare(Comparison::GreaterOrEqual, boxed(it.clone()), boxed(self.compile(low)?));
                let high = Expression::Compare(Comparison::LessOrEqual, boxed(it), boxed(self.compile(high)?));
                negate(Expression::And(boxed(low), boxed(high)), *negated)
            }
            Expr::Like {
                negated,
                any: false,
                expr,
                pattern,
                escape_char: None,
            } => {
                let Expression::Text(pattern) = self.compile(pattern)? else {
                    return Err(Error::input(format!("like {pattern}: expected a text in quotes")));
                };
                negate(Expression::Like(boxed(self.compile(expr)?), pattern), *negated)
            }
            Expr::Cast {
                kind: CastKind::Cast | CastKind::DoubleColon,
                expr: inside,
                data_type,
                format: None,
            } => match data_type {
                DataType::Double(_) | DataType::DoublePrecision | DataType::Float(_) | DataType::Real => {
                    Expression::AsNumber(boxed(self.compile(inside)?))
                }
                _ => return Err(Error::input(format!("`{expr}`: expected `as double`"))),
            },
            Expr::Substring {
                expr,
                substring_from: Some(from),
                substring_for,
                ..
            } => Expression::Substring(
                boxed(self.compile(expr)?),
                boxed(self.compile(from)?),
                match substring_for {
                    Some(count) => Some(boxed(self.compile(count)?)),
                    None => None,
                },
            ),
            Expr::Function(function) => {
                if aggregate(expr)?.is_some() {
                    return Err(Error::input(format!(
                        "`{expr}`: expected as an item of its own, not within an expression"
                    )));
                }
                let arguments = arguments(&function.args).ok_or_else(|| unsupported(expr))?;
                self.function(&function.name, &arguments, expr)?
            }
            _ => return Err(unsupported(expr)),
        })
    }

    fn function(&mut self, name: &ObjectName, arguments: &[&Expr], whole_call: &Expr) -> Result<Expression> {
        let name = name.to_string().to_ascii_lowercase();
        Ok(match (name.as_str(), arguments) {
            ("lower", [of]) => Expression::Lower(Box::new(self.compile(of)?)),
            ("upper", [of]) => Expression::Upper(Box::new(self.compile(of)?)),
            ("length", [of]) => Expression::Length(Box::new(self.compile(of)?)),
            ("field", [of, number]) => match whole(number, "field")? {
                0 => return Err(Error::input(format!("`{whole_call}`: expected a number from 1 on"))),
                number => Expression::Field(Box::new(self.compile(of)?), number),
            },
            ("lower" | "upper" | "length" | "field", _) => {
                return Err(Error::input(format!(
                    "`{whole_call}`: {} arguments, expected {}",
                    arguments.len(),
                    if name == "field" { 2 } else { 1 }
                )));
            }
            _ => {
                let known = [
                    "count",
                    "sum",
                    "avg",
                    "proportion",
                    "lower",
                    "upper",
                    "length",
                    "substr",
                    "field",
                    "cast",
                ];
                return Err(ftlab_core::error::unknown("function", &name, &known));
            }
        })
    }
}

fn arguments(arguments: &FunctionArguments) -> Option<Vec<&Expr>> {
    let FunctionArguments::List(list) = arguments else {
        return None;
    };
    let plain = |argument| match argument {
        &FunctionArg::Unnamed(FunctionArgExpr::Expr(ref expr)) => Some(expr),
        _ => None,
    };
    list.args.iter().map(plain).collect()
}

fn negate(expression: Expression, negated: bool) -> Expression {
    if negated {
        Expression::Not(Box::new(expression))
    } else {
        expression
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn columns() -> Vec<String> {
        ["ms", "country", "code"].map(String::from).to_vec()
    }

    fn plan(text: &str) -> Result<Plan> {
        bind(&parse(text)?, &Form::parse("csv", None)?, &columns(), None)
    }

    #[test]
    fn the_question_of_the_guide() {
        let plan = plan("select country, avg(ms) as mean, count(*) from 'logs/*.csv' where ms > 1 group by country order by 3 desc limit 5").unwrap();
        assert_eq!(plan.picks, [Pick::Field(0), Pick::Field(1)]);
        assert_eq!(plan.groups, [Expression::Slot(1)]);
        let names: Vec<&str> = plan.columns.iter().map(|column| column.name.as_str()).collect();
        assert_eq!(names, ["country", "mean", "count(*)"]);
        assert_eq!((plan.orders, plan.limit), (vec![(2, true)], Some(5)));
    }

    #[test]
    fn what_is_not_answered_is_refused_by_name() {
        for (text, says) in [
            ("select", "query: "),
            ("select 1", "expected one file"),
            ("select country from 'a.csv'", "`country`: expected in `group by`"),
            (
                "select country from 'a.csv' group by country",
                "expected at least one of count",
            ),
            (
                "select count(distinct ms) from 'a.csv'",
                "does not tell how many are distinct",
            ),
            ("select sum(mz) from 'a.csv'", "unknown field `mz`; did you mean `ms`?"),
            ("select median(ms) from 'a.csv'", "unknown function `median`"),
            (
                "select count(*) from 'a.csv' having count(*) > 1",
                "`having count(*) > 1`",
            ),
            (
                "select count(*) from 'a.csv' a left join 'b.csv' b on a.ms = b.ms",
                "LEFT JOIN",
            ),
            (
                "select count(*), sum(ms) + 1 from 'a.csv'",
                "expected as an item of its own",
            ),
            ("select count(*) from (select 1)", "not among what is sampled"),
            (
                "select row_number() over () from 'a.csv'",
                "unknown function `row_number`",
            ),
            (
                "select count(*) from 'a.csv' order by ms",
                "expected an item of the select",
            ),
            ("delete from a", "expected one `select`"),
            (
                "select count(*) from rows('a')",
                "unknown function behind `from` `rows`",
            ),
        ] {
            let error = plan(text).map(|_| ()).unwrap_err().to_string();
            assert!(error.contains(says), "{text}: {error}");
        }
    }
}
