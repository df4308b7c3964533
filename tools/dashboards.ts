/** Writes the dashboards for Grafana: `node tools/dashboards.ts`. A test tells when it is due. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DASHBOARDS } from './monitoring/dashboards.ts';
import { grafanaJson } from './monitoring/grafana.ts';

const dir = join(import.meta.dirname, '../deploy/grafana');
mkdirSync(dir, { recursive: true });
for (const dashboard of DASHBOARDS) {
  writeFileSync(join(dir, `megaplane-${dashboard.name}.json`), grafanaJson(dashboard));
}
