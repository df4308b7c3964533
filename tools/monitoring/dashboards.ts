/**
 * The dashboards of each part, as data: what each panel asks, and in which unit it answers. They
 * ask what the founding experiment's one asked. `tools/dashboards.ts` writes them for Grafana.
 */
import { CONTROLLERS, FLEET, NODES, SCHEDULER } from './clients.ts';
import type { Dashboard } from './panels.ts';
import { APISERVER, STORE } from './servers.ts';

export const DASHBOARDS: readonly Dashboard[] = [
  ...[STORE, APISERVER, SCHEDULER, CONTROLLERS, NODES, FLEET],
];
