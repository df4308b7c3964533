/** Elements by short calls: `el.div({ class: 'card' }, …)`. */
import { h } from 'preact';
import type { ComponentChildren, ComponentType, VNode } from 'preact';

type Properties = Readonly<Record<string, unknown>> | null;

/** One element of HTML. */
export function tag(name: string, properties: Properties, ...children: ComponentChildren[]): VNode {
  return h(name, properties as never, ...children);
}

/** A component that keeps state of its own. */
export function part<Props>(component: ComponentType<Props>, props: Props, key = ''): VNode {
  return h(component as ComponentType, { key, ...props } as never);
}

export const div = (properties: Properties, ...children: ComponentChildren[]): VNode =>
  tag('div', properties, ...children);
export const span = (properties: Properties, ...children: ComponentChildren[]): VNode =>
  tag('span', properties, ...children);
export const button = (properties: Properties, ...children: ComponentChildren[]): VNode =>
  tag('button', { type: 'button', ...properties }, ...children);

/** A titled part of a view. */
export function card(
  title: string,
  properties: Readonly<{ class?: string; aside?: ComponentChildren }>,
  ...children: ComponentChildren[]
): VNode {
  return tag(
    'section',
    { class: `card ${properties.class ?? ''}` },
    tag('header', null, tag('h2', null, title), properties.aside ?? null),
    ...children,
  );
}
