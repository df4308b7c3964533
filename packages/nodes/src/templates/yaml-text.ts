/** YAML text of plain values in block style, as it stands well inside other YAML. */

const PLAIN = /^[A-Za-z_][\w./-]*$/;
/** Words that YAML 1.1 takes for something else than text. */
const TAKEN = /^(y|n|yes|no|on|off|true|false|null|nan|inf)$/i;

/** Text of a value, with a line break at its end, members in order of their names. */
export function yamlText(value: unknown): string {
  const lines = linesOf(value);
  return `${lines.join('\n')}\n`;
}

function linesOf(value: unknown): string[] {
  if (Array.isArray(value)) {
    if (value.length === 0) return ['[]'];
    return value.flatMap((item: unknown) => {
      const [first = '', ...rest] = linesOf(item);
      return [`- ${first}`, ...rest.map((line) => `  ${line}`)];
    });
  }
  if (typeof value !== 'object' || value === null) return [scalar(value)];
  const names = Object.keys(value).toSorted();
  if (names.length === 0) return ['{}'];
  return names.flatMap((name) => {
    const member: unknown = (value as Record<string, unknown>)[name];
    const lines = linesOf(member);
    const isBlock = typeof member === 'object' && member !== null && Object.keys(member).length > 0;
    if (!isBlock) return [`${key(name)}: ${lines[0] ?? ''}`];
    return [`${key(name)}:`, ...lines.map((line) => `  ${line}`)];
  });
}

function key(name: string): string {
  return PLAIN.test(name) && !TAKEN.test(name) ? name : JSON.stringify(name);
}

function scalar(value: unknown): string {
  if (typeof value !== 'string') return JSON.stringify(value ?? null);
  return key(value);
}
