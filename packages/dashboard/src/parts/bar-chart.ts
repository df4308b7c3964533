/** A histogram as bars of HTML: few enough that no library is needed. */
import type { VNode } from 'preact';
import type { Bars } from '../model/protocol.ts';
import { card, div } from './element.ts';
import { shown } from './numbers.ts';

/** Counts by upper bound in seconds; a bound of -1 is what lies beyond. */
export function barCard(bars: Bars | undefined, title: string): VNode {
  const total = bars?.counts.reduce((sum, count) => sum + count, 0) ?? 0;
  if (bars === undefined || total === 0) {
    return card(title, {}, div({ class: 'none' }, 'Nothing was counted since the last look.'));
  }
  const most = Math.max(...bars.counts);
  const columns = bars.bounds.map((bound, index) => {
    const count = bars.counts[index] ?? 0;
    const label = bound < 0 ? 'more' : shown(bound, 'seconds');
    return div(
      { class: 'bar', key: label, title: `up to ${label}: ${count.toLocaleString('en-US')}` },
      div({ class: 'fill', style: { height: `${(count / most) * 100}%` } }),
      div({ class: 'bound' }, label),
    );
  });
  return card(
    bars.title,
    {},
    div({ class: 'bars', role: 'img', 'aria-label': bars.title }, ...columns),
  );
}
