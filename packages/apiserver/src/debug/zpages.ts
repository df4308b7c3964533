/** `/flagz` and `/statusz` (KEP-4828, KEP-4827): pages for people, and objects for programs. */
import type { JsonObject } from '@megaplane/machinery/json-value';
import { notAcceptable, statusBytes } from '@megaplane/machinery/status';
import { jsonText, type Call } from '../request/call.ts';
import { JSON_TYPE, parseAccept, YAML_TYPE } from '../request/negotiation.ts';
import { GIT_VERSION } from '../release.ts';
import { yamlText } from '../request/printed-text.ts';
import type { ProcessFacts } from './process-facts.ts';

const COMPONENT = 'apiserver';
const GROUP = 'config.k8s.io';
const TEXT_TYPE = 'text/plain';
const PAGE_TYPE = 'text/plain; charset=utf-8';
/** One of them is drawn for each page, so that no program comes to rest on its form. */
const DELIMITERS = [':', ': ', '=', ' '] as const;
const OLD_VERSION = 'v1alpha1';
const VERSIONS: readonly string[] = [OLD_VERSION, 'v1beta1'];

/** What a client asks for: a page, or an object of one of the versions. */
type Form =
  | { readonly kind: 'page' }
  | { readonly kind: 'object'; readonly version: string; readonly encoding: 'json' | 'yaml' };

export function answerFlagz(facts: ProcessFacts, call: Call, draw: (n: number) => number): void {
  const flags = [...facts.flags].toSorted(([left], [right]) => (left < right ? -1 : 1));
  answer(call, 'Flagz', { flags: Object.fromEntries(flags) }, () => {
    const delimiter = DELIMITERS[draw(DELIMITERS.length)] ?? ':';
    const lines = flags.map(([name, value]) => `${name}${delimiter}${value}\n`);
    return lines.join('');
  });
}

/** `paths` are all that the server tells of at `/`. */
export function answerStatusz(
  facts: ProcessFacts,
  call: Call,
  draw: (n: number) => number,
  paths: readonly string[],
): void {
  const uptimeSeconds = Math.max(0, Math.floor((call.nowMs - facts.startedMs) / 1000));
  const started = new Date(facts.startedMs);
  const binaryVersion = GIT_VERSION.replace(/^v/, '');
  const emulationVersion = binaryVersion.split('.').slice(0, 2).join('.');
  const folders = foldersOf(paths);
  const object = {
    startTime: `${started.toISOString().slice(0, 19)}Z`,
    uptimeSeconds,
    goVersion: facts.runtime,
    binaryVersion,
    emulationVersion,
    paths: folders,
  };
  answer(call, 'Statusz', object, () => {
    const delimiter = DELIMITERS[draw(DELIMITERS.length)] ?? ':';
    const [hours, minutes] = [
      Math.floor(uptimeSeconds / 3600),
      Math.floor(uptimeSeconds / 60) % 60,
    ];
    const up = `${hours} hr ${twoDigits(minutes)} min ${twoDigits(uptimeSeconds % 60)} sec`;
    const lines = [
      ['Started', unixDate(started)],
      ['Up', up],
      ['Go version', facts.runtime],
      ['Binary version', binaryVersion],
      ['Emulation version', emulationVersion],
      ['Paths', folders.join(' ')],
    ];
    return `\n${lines.map(([name, value]) => `${name}${delimiter} ${value}\n`).join('')}`;
  });
}

function answer(call: Call, kind: string, fields: JsonObject, page: () => string): void {
  const form = formOf(call, kind);
  if (form === null) {
    // these pages have no protobuf form, and neither have their refusals
    const status = notAcceptable([JSON_TYPE, YAML_TYPE, TEXT_TYPE]);
    call.refusal = status;
    call.send(406, JSON_TYPE, statusBytes(status, call.isPretty));
    return;
  }
  const name = kind.toLowerCase();
  if (form.kind === 'page') {
    const warning =
      'Warning: This endpoint is not meant to be machine parseable, has no formatting ' +
      'compatibility guarantees and is for debugging purposes only.';
    call.send(200, PAGE_TYPE, `\n${COMPONENT} ${name}\n${warning}\n${page()}`);
    return;
  }
  if (form.version === OLD_VERSION) {
    call.warn(`This version of the ${name} endpoint is deprecated. Please use a newer version.`);
  }
  const apiVersion = `${GROUP}/${form.version}`;
  const object = { kind, apiVersion, metadata: { name: COMPONENT }, ...fields };
  const asked = `;g=${GROUP};v=${form.version};as=${kind}`;
  if (form.encoding === 'yaml') call.send(200, YAML_TYPE + asked, yamlText(object));
  else call.send(200, JSON_TYPE + asked, jsonText(object, call.isPretty));
}

/** The first clause that can be served: text as it is, JSON and YAML as a kind that is known. */
function formOf(call: Call, kind: string): Form | null {
  const accept = call.exchange.header('accept') ?? '';
  if (accept.trim() === '') return { kind: 'page' };
  for (const { type, parameters } of parseAccept(accept)) {
    const [as, group] = [parameters.get('as'), parameters.get('g')];
    const version = parameters.get('v') ?? '';
    if (parameters.has('stream') || parameters.has('sv')) continue;
    if (as === undefined && group === undefined && version === '') {
      if (['*/*', 'text/*', TEXT_TYPE].includes(type)) return { kind: 'page' };
      continue;
    }
    if (as !== kind || group !== GROUP || !VERSIONS.includes(version)) continue;
    if (type === YAML_TYPE) return { kind: 'object', version, encoding: 'yaml' };
    if (['*/*', 'application/*', JSON_TYPE].includes(type)) {
      return { kind: 'object', version, encoding: 'json' };
    }
  }
  return null;
}

/** Folders that are served for looking into the server, as upstream picks them. */
function foldersOf(paths: readonly string[]): string[] {
  const folders = paths.map((path) => `/${path.split('/')[1] ?? ''}`);
  const others = new Set(['/', '/apis', '/api', '/openid', '/openapi', '/.well-known']);
  return [...new Set(folders)].filter((one) => !others.has(one)).toSorted();
}

function twoDigits(n: number): string {
  return String(n).padStart(2, '0');
}

/** Go's `time.UnixDate`, in UTC: `Mon Jan _2 15:04:05 UTC 2006`. */
function unixDate(at: Date): string {
  const [day = '', date = '', month = '', year = '', time = ''] = at.toUTCString().split(/,? /);
  return `${day} ${month} ${String(Number(date)).padStart(2, ' ')} ${time} UTC ${year}`;
}
