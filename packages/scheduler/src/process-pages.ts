/** `/statusz` and `/flagz` (KEP-4827, KEP-4828): pages for people, objects for programs. */
import type { JsonObject } from '@megaplane/machinery/json-value';
import { notAcceptable } from '@megaplane/machinery/status';
import type { Page } from './http-endpoint.ts';

const COMPONENT = 'kube-scheduler';
const GROUP = 'config.k8s.io';
const OLD_VERSION = 'v1alpha1';
const VERSIONS: readonly string[] = [OLD_VERSION, 'v1beta1'];
/** kube-scheduler's release whose pages these are. */
const RELEASE = '1.36.1';
/** As kube-scheduler tells of them. */
const PATHS = ['/configz', '/flagz', '/healthz', '/livez', '/metrics', '/readyz'] as const;
const JSON_TYPE = 'application/json';

export interface ProcessFacts {
  /** Values of the flags by name, those that were not given, too. */
  readonly flags: ReadonlyMap<string, string>;
  readonly startedMs: number;
  /** Of the language's runtime: `node v26.10.0`. */
  readonly runtime: string;
}

export function flagzPage({ flags }: ProcessFacts, accept: string): Page {
  const sorted = [...flags].toSorted(([left], [right]) => (left < right ? -1 : 1));
  const text = sorted.map(([name, value]) => `${name} ${value}\n`).join('');
  return processPage('Flagz', accept, { flags: Object.fromEntries(sorted) }, text);
}

export function statuszPage(facts: ProcessFacts, accept: string, nowMs: number): Page {
  const uptimeSeconds = Math.max(0, Math.floor((nowMs - facts.startedMs) / 1000));
  const started = new Date(facts.startedMs);
  const emulationVersion = RELEASE.split('.').slice(0, 2).join('.');
  const object = {
    startTime: `${started.toISOString().slice(0, 19)}Z`,
    uptimeSeconds,
    goVersion: facts.runtime,
    binaryVersion: RELEASE,
    emulationVersion,
    paths: [...PATHS],
  };
  const [hours, minutes] = [Math.floor(uptimeSeconds / 3600), Math.floor(uptimeSeconds / 60) % 60];
  const lines = [
    `Started:  ${unixDate(started)}`,
    `Up:  ${hours} hr ${twoDigits(minutes)} min ${twoDigits(uptimeSeconds % 60)} sec`,
    `Go version:  ${facts.runtime}`,
    `Binary version:  ${RELEASE}`,
    `Emulation version:  ${emulationVersion}`,
    `Paths:  ${PATHS.join(' ')}`,
  ];
  return processPage('Statusz', accept, object, `\n${lines.join('\n')}\n`);
}

function processPage(kind: string, accept: string, fields: JsonObject, text: string): Page {
  const name = kind.toLowerCase();
  for (const clause of accept.trim() === '' ? ['*/*'] : accept.split(',')) {
    const [type = '', ...given] = clause.split(';').map((part) => part.trim());
    const parameters = new Map(given.map((part) => part.split('=', 2) as [string, string]));
    const [as, group] = [parameters.get('as'), parameters.get('g')];
    const version = parameters.get('v');
    if (as === undefined && group === undefined && version === undefined) {
      if (['*/*', 'text/*', 'text/plain'].includes(type)) return textPage(name, text);
    } else if (as === kind && group === GROUP && VERSIONS.includes(version ?? '')) {
      if (['*/*', 'application/*', JSON_TYPE].includes(type)) {
        return objectPage(kind, version ?? '', fields);
      }
    }
  }
  const status = notAcceptable([JSON_TYPE, 'application/yaml', 'text/plain']);
  return { contentType: JSON_TYPE, status: 406, text: JSON.stringify(status, null, 2) };
}

function textPage(name: string, text: string): Page {
  const warning =
    'Warning: This endpoint is not meant to be machine parseable, has no formatting ' +
    'compatibility guarantees and is for debugging purposes only.';
  return {
    contentType: 'text/plain; charset=utf-8',
    text: `\n${COMPONENT} ${name}\n${warning}\n${text}`,
  };
}

function objectPage(kind: string, version: string, fields: JsonObject): Page {
  const apiVersion = `${GROUP}/${version}`;
  const object = { kind, apiVersion, metadata: { name: COMPONENT }, ...fields };
  const name = kind.toLowerCase();
  const warning = `This version of the ${name} endpoint is deprecated. Please use a newer version.`;
  return {
    contentType: `${JSON_TYPE};g=${GROUP};v=${version};as=${kind}`,
    text: JSON.stringify(object, null, 2),
    ...(version === OLD_VERSION ? { headers: { warning: `299 - "${warning}"` } } : {}),
  };
}

function twoDigits(n: number): string {
  return String(n).padStart(2, '0');
}

/** Go's `time.UnixDate`, in UTC: `Mon Jan _2 15:04:05 UTC 2006`. */
function unixDate(at: Date): string {
  const [day = '', date = '', month = '', year = '', time = ''] = at.toUTCString().split(/,? /);
  return `${day} ${month} ${String(Number(date)).padStart(2, ' ')} ${time} UTC ${year}`;
}
