/** Metrics of a provider. The reference has none for providers; the names follow its others. */
import { Exposition } from '@megaplane/client/exposition';
import { CapacityType, MachineState } from '../contract/tables/provider.ts';
import type { Provider } from './provider.ts';

const PREFIX = 'bigfleet_provider_';

export function providerMetrics(provider: Provider): string {
  const page = new Exposition();
  page.family(`${PREFIX}machines`, 'gauge', 'Machines by state and capacity type.');
  const counts = new Map<string, { readonly labels: Record<string, string>; count: number }>();
  for (const { state, capacityType } of provider.machines()) {
    const labels = {
      state: nameOf(MachineState, state),
      capacity_type: nameOf(CapacityType, capacityType),
    };
    const key = `${state}/${capacityType}`;
    const cell = counts.get(key);
    if (cell === undefined) counts.set(key, { labels, count: 1 });
    else cell.count++;
  }
  for (const { labels, count } of counts.values()) page.value(labels, count);
  page.family(`${PREFIX}calls_total`, 'counter', 'Calls that change machines, by outcome.');
  for (const [key, count] of provider.calls) {
    const [call = '', outcome = ''] = key.split('/');
    page.value({ call, outcome }, count);
  }
  page.family(`${PREFIX}transitions_total`, 'counter', 'Transitions that ended.');
  for (const [key, count] of provider.transitions) {
    const [kind = '', outcome = ''] = key.split('/');
    page.value({ kind, outcome }, count);
  }
  return page.toString();
}

function nameOf(words: Readonly<Record<string, number>>, number: number): string {
  return Object.entries(words).find(([, one]) => one === number)?.[0] ?? String(number);
}
