/** A dashboard as Grafana reads it (schema version 39, Grafana 10 and newer). */
import type { Dashboard, Panel } from './panels.ts';

const COLUMNS = 24;
const PANEL_WIDTH = 8;
const PANEL_HEIGHT = 8;
const SOURCE = { type: 'prometheus', uid: '${datasource}' };

/** The file's text. The same dashboard makes the same text. */
export function grafanaJson(dashboard: Dashboard): string {
  const panels: object[] = [];
  let y = 0;
  for (const row of dashboard.rows) {
    const gridPos = { x: 0, y, w: COLUMNS, h: 1 };
    panels.push({
      id: panels.length + 1,
      type: 'row',
      title: row.title,
      collapsed: false,
      gridPos,
    });
    y++;
    for (const [at, panel] of row.panels.entries()) {
      const x = (at * PANEL_WIDTH) % COLUMNS;
      const place = { x, y, w: PANEL_WIDTH, h: PANEL_HEIGHT };
      panels.push(panelOf(panels.length + 1, panel, place));
      const isLast = at === row.panels.length - 1;
      if (isLast || x + PANEL_WIDTH >= COLUMNS) y += PANEL_HEIGHT;
    }
  }
  return `${JSON.stringify(
    {
      uid: `megaplane-${dashboard.name}`,
      title: dashboard.title,
      tags: ['megaplane'],
      schemaVersion: 39,
      editable: true,
      graphTooltip: 1,
      refresh: '10s',
      time: { from: 'now-30m', to: 'now' },
      templating: { list: variables(dashboard) },
      links: [{ type: 'dashboards', title: 'Megaplane', tags: ['megaplane'], asDropdown: true }],
      panels,
    },
    null,
    2,
  )}\n`;
}

function variables({ sign }: Dashboard): object[] {
  const instances = `label_values(${sign}, instance)`;
  return [
    { name: 'datasource', type: 'datasource', query: 'prometheus', label: 'Data source' },
    {
      ...{ name: 'instance', type: 'query', label: 'Instance', datasource: SOURCE },
      ...{ query: instances, definition: instances, refresh: 2, multi: true, includeAll: true },
      current: { text: 'All', value: '$__all' },
    },
  ];
}

function panelOf(id: number, { title, queries, unit, says }: Panel, gridPos: object): object {
  const targets = Object.entries(queries).map(([legendFormat, expr], at) => ({
    refId: String.fromCharCode('A'.charCodeAt(0) + at),
    ...{ expr, legendFormat, datasource: SOURCE },
  }));
  return {
    ...{ id, type: 'timeseries', title, gridPos, datasource: SOURCE, targets },
    ...(says === undefined ? {} : { description: says }),
    fieldConfig: { defaults: { unit, min: 0, custom: { fillOpacity: 8 } }, overrides: [] },
    options: { legend: { displayMode: 'list', placement: 'bottom' }, tooltip: { mode: 'multi' } },
  };
}
