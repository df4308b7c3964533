/** Tables for people. */
import { visibleText } from '@megaplane/base/visible-text';

/** Columns as wide as their widest cell, two blanks between them; cells show no control signs. */
export function textTable(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const all = [head, ...rows].map((row) => row.map((cell) => visibleText(cell)));
  const widths = head.map((_, column) => {
    return all.reduce((widest, row) => Math.max(widest, (row[column] ?? '').length), 0);
  });
  const lines = all.map((row) => {
    return row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join('  ')
      .trimEnd();
  });
  return lines.join('\n');
}

/** `cpu=4,memory=8Gi`; `-` for nothing. */
export function amountsText(texts: Readonly<Record<string, string>> | undefined): string {
  const pairs = Object.entries(texts ?? {}).map(([name, text]) => `${name}=${text}`);
  return pairs.join(',') || '-';
}
