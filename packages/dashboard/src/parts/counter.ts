/** A figure in large digits, with what belongs to it below. */
import type { VNode } from 'preact';
import type { Unit } from '../model/protocol.ts';
import { div } from './element.ts';
import { shown } from './numbers.ts';

export interface CounterProps {
  readonly label: string;
  readonly value: number | undefined;
  readonly unit: Unit;
  /** Below: what the figure is of, or how fast it changes. */
  readonly note?: string;
  readonly tone?: 'good' | 'bad' | 'plain';
}

export function counter({ label, value, unit, note, tone = 'plain' }: CounterProps): VNode {
  return div(
    { class: `counter ${tone}` },
    div({ class: 'label' }, label),
    div({ class: 'value' }, shown(value, unit)),
    div({ class: 'note' }, note ?? '\u00a0'),
  );
}
