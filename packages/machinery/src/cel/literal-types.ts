/** Members of a list or a map that an expression writes are of one type; even `dyn` is another. */
import { partsOf, type Expr, type Issue } from './syntax/syntax.ts';
import { DYN, typeText } from './values/typing.ts';
import type { Checked } from './syntax/environment.ts';

/** What is wrong with the lists and maps of a tree; arguments of a format may be of all types. */
export function literalTypeIssues(root: Expr, { types }: Checked): Issue[] {
  const textOf = (expr: Expr, isOptional: boolean): string => {
    const type = types.get(expr) ?? DYN;
    return typeText(isOptional ? (type.params[0] ?? DYN) : type);
  };
  const lists: Issue[] = [];
  const maps: Issue[] = [];
  const visit = (expr: Expr): void => {
    if (expr.kind === 'call' && expr.name === 'format') return;
    if (expr.kind === 'list') {
      const optional = new Set(expr.optional);
      const texts = expr.items.map((item, index) => textOf(item, optional.has(index)));
      const odd = texts.findIndex((text) => text !== texts[0]);
      const item = expr.items[odd];
      if (item !== undefined) lists.push({ at: item.at, message: apart(texts[0], texts[odd]) });
    }
    if (expr.kind === 'map') {
      const [first] = expr.entries;
      for (const { key, value, isOptional } of expr.entries) {
        if (first === undefined) break;
        const pairs = [
          [key, textOf(first.key, false), textOf(key, false)],
          [value, textOf(first.value, first.isOptional), textOf(value, isOptional)],
        ] as const;
        for (const [{ at }, wanted, found] of pairs) {
          if (wanted !== found) maps.push({ at, message: apart(wanted, found) });
        }
      }
    }
    for (const part of partsOf(expr)) visit(part);
  };
  visit(root);
  return [...lists, ...maps];
}

function apart(wanted = '', found = ''): string {
  return `expected type '${wanted}' but found '${found}'`;
}
