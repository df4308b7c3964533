/** The labels by which requests are counted, as upstream's MonitorRequest gives them. */
import type { Call } from './call.ts';
import { effectiveVerb } from './resource-route.ts';

const VERBS: Readonly<Record<string, string>> = {
  create: 'POST',
  update: 'PUT',
  get: 'GET',
  head: 'GET',
  deletecollection: 'DELETE',
};
const METHODS: ReadonlySet<string> = new Set(
  'APPLY CONNECT DELETE GET HEAD LIST OPTIONS PATCH POST PUT WATCH WATCHLIST'.split(' '),
);
const CONNECTED: ReadonlySet<string> = new Set(['attach', 'exec', 'portforward', 'proxy']);
/** Paths of which upstream tells; of all others it would be the clients who name series. */
const PATHS = /^\/(healthz|livez|readyz|metrics|metrics\/slis|version|openapi\/v[23])$/;
const APPLY = 'application/apply-patch+';

/** What was done to what, by verbs of HTTP where they say it. */
export interface RequestLabels {
  /** In the order of names, without `dry_run`, `code` and `component`. */
  readonly common: string;
  readonly component: string;
  readonly dryRun: string;
}

export function labelsOf(call: Call): RequestLabels {
  const { info } = call;
  const { isResource } = info;
  const subresource = isResource ? info.subresource : (PATHS.exec(info.path)?.[0] ?? '');
  const common =
    `group="${info.group}",resource="${isResource ? info.resource : ''}",` +
    `scope="${isResource ? scopeOf(call) : ''}",subresource="${subresource}",` +
    `verb="${verbOf(call)}",version="${info.version}"`;
  return {
    common,
    component: isResource ? 'apiserver' : '',
    dryRun: call.query.has('dryRun') ? 'All' : '',
  };
}

/** A patch that is applied. */
export function isApply({ exchange }: Call): boolean {
  return (exchange.header('content-type') ?? '').startsWith(APPLY);
}

function scopeOf({ info }: Call): string {
  if (info.name !== '' || info.verb === 'create') return 'resource';
  return info.namespace === '' ? 'cluster' : 'namespace';
}

function verbOf(call: Call): string {
  const { info } = call;
  const verb = info.isResource ? effectiveVerb(call) : info.verb;
  if (CONNECTED.has(info.subresource)) return 'CONNECT';
  if (verb === 'patch' && isApply(call)) return 'APPLY';
  const said = VERBS[verb] ?? verb.toUpperCase();
  return METHODS.has(said) ? said : 'other';
}
