/** A table of figures. */
import type { VNode } from 'preact';
import type { Grid } from '../model/protocol.ts';
import { card, div, tag } from './element.ts';
import { shown } from './numbers.ts';

/** A card with the rows, or with what stands there when there is none. */
export function gridCard(grid: Grid | undefined, title = ''): VNode {
  if (grid === undefined) return card(title, {}, div({ class: 'none' }, 'Waiting for figures…'));
  const { head, rows, none } = grid;
  if (rows.length === 0) return card(grid.title, {}, div({ class: 'none' }, none));
  const heads = head.map(({ name, unit }) =>
    tag('th', { scope: 'col', class: unit === 'text' ? '' : 'number' }, name),
  );
  const lines = rows.map((row) =>
    tag(
      'tr',
      { key: String(row[0]) + String(row[1]) },
      ...head.map(({ unit }, index) => {
        const value = row[index] ?? null;
        if (unit === 'text') return tag('td', null, String(value ?? ''));
        const isZero = value === 0;
        const text = shown(typeof value === 'number' ? value : null, unit);
        return tag('td', { class: isZero ? 'number zero' : 'number' }, text);
      }),
    ),
  );
  return card(
    grid.title,
    {},
    div(
      { class: 'scroll' },
      tag(
        'table',
        null,
        tag('thead', null, tag('tr', null, ...heads)),
        tag('tbody', null, ...lines),
      ),
    ),
  );
}
