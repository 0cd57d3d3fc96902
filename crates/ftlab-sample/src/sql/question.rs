//! A text becomes a question; clauses that are not answered are refused by name.

use sqlparser::ast::{
    BinaryOperator, Distinct, Expr, FunctionArg, FunctionArgExpr, FunctionArguments, GroupByExpr, JoinConstraint,
    JoinOperator, LimitClause, OrderByKind, OrderBySort, Query, Select, SelectItem, SetExpr, Statement, TableFactor,
    Value as Literal,
};
use sqlparser::dialect::GenericDialect;
use sqlparser::parser::Parser;

use ftlab_core::{Error, Result};

use crate::record::Explode;

use super::{Files, Join, Question, unsupported, whole};

/// Bytes of a query. Each operator of a chain is a level of the expression, and levels of a longer one would fill the stack.
pub const LONGEST_QUERY: usize = 8192;

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
        (Files::Pattern(file), None, alias) => (file, alias),
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
fn table(factor: &TableFactor) -> Result<(Files, Option<Explode>, Option<String>)> {
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
        return Ok((Files::Pattern(ident.value.clone()), None, alias));
    };
    let explode = match name.to_string().to_ascii_lowercase().as_str() {
        "words" => Some(Explode::Words),
        "links" => Some(Explode::Links),
        "ldd" => None,
        _ => {
            return Err(ftlab_core::error::unknown(
                "function behind `from`",
                &name.to_string(),
                &["ldd", "links", "words"],
            ));
        }
    };
    let files = match (&args.args[..], explode) {
        ([FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Function(stored)))], Some(_)) => stored_name(stored)?,
        ([FunctionArg::Unnamed(FunctionArgExpr::Expr(of))], Some(_)) => text(of).map(Files::Pattern),
        ([FunctionArg::Unnamed(FunctionArgExpr::Expr(of))], None) => text(of).map(Files::Stored),
        _ => None,
    };
    let quoted = if explode.is_some() {
        "files in quotes, or ldd('NAME')"
    } else {
        "the name of an LDD in quotes"
    };
    let files = files.ok_or_else(|| Error::input(format!("{name}: expected {quoted}")))?;
    Ok((files, explode, alias))
}

/// The name in `ldd('NAME')`.
fn stored_name(function: &sqlparser::ast::Function) -> Result<Option<Files>> {
    let FunctionArguments::List(list) = &function.args else {
        return Err(unsupported(function));
    };
    match (function.name.to_string().to_ascii_lowercase().as_str(), &list.args[..]) {
        ("ldd", [FunctionArg::Unnamed(FunctionArgExpr::Expr(of))]) => Ok(text(of).map(Files::Stored)),
        _ => Err(unsupported(function)),
    }
}

/// A text in quotes of either kind.
fn text(of: &Expr) -> Option<String> {
    match of {
        Expr::Value(value) => match &value.value {
            Literal::SingleQuotedString(text) | Literal::DoubleQuotedString(text) => Some(text.clone()),
            _ => None,
        },
        Expr::Identifier(ident) => Some(ident.value.clone()),
        _ => None,
    }
}
