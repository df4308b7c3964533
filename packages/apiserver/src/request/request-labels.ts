/** The labels by which requests are counted, as upstream's MonitorRequest gives them. */
import { labelValue } from '@megaplane/base/visible-text';
import { ownMember } from '@megaplane/base/members';
import type { Call } from './call.ts';
import { effectiveVerb } from './request-terms.ts';

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
const CONNECTED: ReadonlySet<string> = new Set(['attach', 'exec', 'log', 'portforward', 'proxy']);
/** Paths of which upstream counts requests, by the subresource that it takes them for. */
const CHECKS = /^\/(?:healthz|livez|readyz)$/;
const DOCUMENTS = /^\/(openapi\/v3(?:\/(?=.)|$))/;
/** The same by the resource. */
const PAGES = /^\/(flagz|statusz)$/;
const APPLY = 'application/apply-patch+yaml';

/** What was done to what, by verbs of HTTP where they say it. */
export interface RequestLabels {
  /** In the order of names, without `dry_run`, `code` and `component`. */
  readonly common: string;
  readonly component: string;
  readonly dryRun: string;
}

/** Null for paths whose requests upstream does not count: clients could name series by them. */
export function labelsOf(call: Call): RequestLabels | null {
  const { info } = call;
  const dryRun = call.query.has('dryRun') ? 'All' : '';
  if (info.isResource) {
    const common =
      `group="${labelValue(info.group)}",resource="${labelValue(info.resource)}",` +
      `scope="${scopeOf(call)}",subresource="${labelValue(info.subresource)}",` +
      `verb="${verbOf(call)}",version="${labelValue(info.version)}"`;
    return { common, component: 'apiserver', dryRun };
  }
  const page = PAGES.exec(info.path)?.[1] ?? '';
  const subresource = CHECKS.exec(info.path)?.[0] ?? DOCUMENTS.exec(info.path)?.[1] ?? '';
  if (page === '' && subresource === '') return null;
  const common =
    `group="",resource="${page}",scope="",subresource="${subresource}",` +
    `verb="${verbOf(call)}",version=""`;
  return { common, component: page === '' ? '' : 'apiserver', dryRun };
}

/** How requests are told of that never came to a route, those of no resource by `place`. */
export function unroutedLabelsOf(call: Call, place = ''): RequestLabels {
  const labels = call.info.isResource ? labelsOf(call) : null;
  if (labels !== null) return labels;
  const verb = verbOf(call);
  const common = `group="",resource="",scope="",subresource="${place}",verb="${verb}",version=""`;
  return { common, component: 'apiserver', dryRun: call.query.has('dryRun') ? 'All' : '' };
}

/** A patch that is applied, as upstream's metrics see it: by a type without parameters. */
export function isApply({ exchange }: Call): boolean {
  return exchange.header('content-type') === APPLY;
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
  const said = ownMember(VERBS, verb) ?? verb.toUpperCase();
  return METHODS.has(said) ? said : 'other';
}
