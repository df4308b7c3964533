/** Pages with every flag of every command, made from the program's own table. */
import {
  commandTable,
  type CommandRow,
  type FlagRow,
} from '../../packages/cli/src/completion/table.ts';
import { makeProgram } from '../../packages/cli/src/program.ts';

/** A page by the name of its command: `up`, `store`. */
export function referencePages(version: string): ReadonlyMap<string, string> {
  const commands = commandTable(makeProgram(version, () => {}));
  const [program, ...others] = commands;
  const names = program?.children ?? [];
  return new Map(
    names.map((name) => {
      const rows = others.filter(({ path }) => path[0] === name);
      return [name, `# megaplane ${name}\n\n${rows.map(commandText).join('\n')}`];
    }),
  );
}

function commandText({ path, description, usage, flags, children }: CommandRow): string {
  const name = `megaplane ${path.join(' ')}`;
  const [about = '', ...rest] = description.split('\n\n');
  const example = /^Example: ([^]*)$/.exec(rest.join('\n\n'))?.[1];
  const heading = path.length === 1 ? '' : `## ${name}\n\n`;
  const parts = [`${heading}${safe(about)}\n\n    ${name} ${usage}\n`];
  if (example !== undefined) parts.push(`For example:\n\n    ${example.replaceAll('\n', ' ')}\n`);
  if (children.length > 0) parts.push(`Commands below it: ${children.join(', ')}.\n`);
  for (const [group, rows] of grouped(flags)) {
    if (group !== '') parts.push(`**${group}**\n`);
    const lines = rows.map(flagRow);
    parts.push(`| flag | what it does | default |\n|---|---|---|\n${lines.join('\n')}\n`);
  }
  return parts.join('\n');
}

function grouped(flags: readonly FlagRow[]): Map<string, FlagRow[]> {
  const groups = new Map<string, FlagRow[]>();
  for (const flag of flags) groups.set(flag.group, [...(groups.get(flag.group) ?? []), flag]);
  return groups;
}

function flagRow({ usage, description, defaultText }: FlagRow): string {
  const cell = (text: string): string => text.replaceAll('|', '\\|').replaceAll('\n', ' ');
  const shown = defaultText === '' ? '' : `\`${cell(defaultText)}\``;
  return `| \`${cell(usage)}\` | ${safe(cell(description))} | ${shown} |`;
}

/** Words that are no markup: `<name>`, `{{name}}`. */
function safe(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('{{', '&#123;&#123;');
}
