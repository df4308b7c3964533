/** `/statusz` and `/flagz` (KEP-4827, KEP-4828): pages for people, objects for programs. */
import type { JsonObject } from '@megaplane/machinery/json-value';
import { notAcceptable } from '@megaplane/machinery/status';
import type { Page } from './http-endpoint.ts';

const GROUP = 'config.k8s.io';
const OLD_VERSION = 'v1alpha1';
const VERSIONS: readonly string[] = [OLD_VERSION, 'v1beta1'];
/** The release whose pages these are. */
const RELEASE = '1.36.1';
const JSON_TYPE = 'application/json';

export interface ProcessFacts {
  /** As upstream calls the program. */
  readonly component: string;
  /** Values of the flags by name, those that were not given, too. */
  readonly flags: ReadonlyMap<string, string>;
  readonly startedMs: number;
  /** Of the language's runtime: `node v26.10.0`. */
  readonly runtime: string;
  /** Pages that `/statusz` tells of. */
  readonly paths: readonly string[];
}

export function flagzPage({ component, flags }: ProcessFacts, accept: string): Page {
  const sorted = [...flags].toSorted(([left], [right]) => (left < right ? -1 : 1));
  const text = sorted.map(([name, value]) => `${name} ${value}\n`).join('');
  return processPage(['Flagz', component], accept, { flags: Object.fromEntries(sorted) }, text);
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
    paths: [...facts.paths],
  };
  const [hours, minutes] = [Math.floor(uptimeSeconds / 3600), Math.floor(uptimeSeconds / 60) % 60];
  const lines = [
    `Started:  ${unixDate(started)}`,
    `Up:  ${hours} hr ${twoDigits(minutes)} min ${twoDigits(uptimeSeconds % 60)} sec`,
    `Go version:  ${facts.runtime}`,
    `Binary version:  ${RELEASE}`,
    `Emulation version:  ${emulationVersion}`,
    `Paths:  ${facts.paths.join(' ')}`,
  ];
  return processPage(['Statusz', facts.component], accept, object, `\n${lines.join('\n')}\n`);
}

/** What a page tells of: `Flagz`, and whose. */
type Told = readonly [kind: string, component: string];

function processPage(told: Told, accept: string, fields: JsonObject, text: string): Page {
  const [kind] = told;
  for (const clause of accept.trim() === '' ? ['*/*'] : accept.split(',')) {
    const [type = '', ...given] = clause.split(';').map((part) => part.trim());
    const parameters = new Map(given.map((part) => part.split('=', 2) as [string, string]));
    const [as, group] = [parameters.get('as'), parameters.get('g')];
    const version = parameters.get('v');
    if (as === undefined && group === undefined && version === undefined) {
      if (['*/*', 'text/*', 'text/plain'].includes(type)) return textPage(told, text);
    } else if (as === kind && group === GROUP && VERSIONS.includes(version ?? '')) {
      if (['*/*', 'application/*', JSON_TYPE].includes(type)) {
        return objectPage(told, version ?? '', fields);
      }
    }
  }
  const status = notAcceptable([JSON_TYPE, 'application/yaml', 'text/plain']);
  return { contentType: JSON_TYPE, status: 406, text: JSON.stringify(status, null, 2) };
}

function textPage([kind, component]: Told, text: string): Page {
  const warning =
    'Warning: This endpoint is not meant to be machine parseable, has no formatting ' +
    'compatibility guarantees and is for debugging purposes only.';
  return {
    contentType: 'text/plain; charset=utf-8',
    text: `\n${component} ${kind.toLowerCase()}\n${warning}\n${text}`,
  };
}

function objectPage([kind, component]: Told, version: string, fields: JsonObject): Page {
  const apiVersion = `${GROUP}/${version}`;
  const object = { kind, apiVersion, metadata: { name: component }, ...fields };
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
