/** YAML text of plain values in block style, as sigs.k8s.io/yaml (go-yaml v2) writes it. */
import { ownMember } from '@megaplane/base/members';

/** Words that YAML 1.1 takes for something else than text. */
const TAKEN = /^(y|n|yes|no|on|off|true|false|null|~|[-+]?\.inf|\.nan|)$/i;
const NUMBER =
  /^[-+]?(0b[01_]+|0o?[0-7_]+|0x[\da-f_]+|(\d[\d_]*(\.\d[\d_]*)?|\.\d[\d_]*)\.?(e[-+]?\d+)?)$/i;
/** Numbers in base 60, and times. */
const COLONS = /^[-+]?\d[\d_]*(:[0-5]?\d)+(\.\d*)?$/;
const TIME = /^\d{4}-\d\d?-\d\d?([Tt ]+\d\d?:\d\d:\d\d(\.\d*)?( ?(Z|[-+]\d\d?(:\d\d)?))?)?$/;
/** What plain text may not be: marks of YAML at its begin, spaces at its ends, `: ` and ` #`. */
const MARKED = /^[#,[\]{}&*!|>'"%@`]|^[-?:]( |$)|^(---|\.\.\.)|^ | $|: |:$| #/;
// oxlint-disable-next-line no-control-regex
const SPECIAL = /[\x00-\x09\x0b-\x1f\x7f\uFEFF]|[\uD800-\uDFFF](?![\uDC00-\uDFFF])/;

/** Text of a value, with a line break at its end, members in order of their names. */
export function yamlText(value: unknown): string {
  const lines = linesOf(value);
  return `${lines.join('\n')}\n`;
}

function linesOf(value: unknown): readonly string[] {
  if (Array.isArray(value)) {
    if (value.length === 0) return ['[]'];
    return value.flatMap((item: unknown) => {
      const [first = '', ...rest] = linesOf(item);
      return [`- ${first}`, ...rest.map(deeper)];
    });
  }
  if (typeof value !== 'object' || value === null) return scalarLines(value);
  const names = Object.keys(value).toSorted();
  if (names.length === 0) return ['{}'];
  return names.flatMap((name) => {
    const member: unknown = ownMember(value as Record<string, unknown>, name);
    const lines = linesOf(member);
    const isBlock = typeof member === 'object' && member !== null && Object.keys(member).length > 0;
    if (!isBlock) return [`${text(name)}: ${lines[0] ?? ''}`, ...lines.slice(1).map(deeper)];
    return [`${text(name)}:`, ...(Array.isArray(member) ? lines : lines.map(deeper))];
  });
}

function deeper(line: string): string {
  return line === '' ? '' : `  ${line}`;
}

function scalarLines(value: unknown): readonly string[] {
  if (typeof value !== 'string') return [JSON.stringify(value ?? null)];
  if (!value.includes('\n') || SPECIAL.test(value)) return [text(value)];
  const end = value.endsWith('\n') ? '' : '-';
  const isKept = value === '\n' || value.endsWith('\n\n');
  const indent = /^[ \n]/.test(value) ? '2' : '';
  return [`|${indent}${isKept ? '+' : end}`, ...value.replace(/\n$/, '').split('\n')];
}

function text(value: string): string {
  if (SPECIAL.test(value) || value.includes('\n')) return JSON.stringify(value);
  const isOther = [TAKEN, NUMBER, COLONS, TIME].some((pattern) => pattern.test(value));
  if (isOther) return JSON.stringify(value);
  return MARKED.test(value) ? `'${value.replaceAll("'", "''")}'` : value;
}
