/** Adds query parameters to a path; empty and undefined ones are left out. */
export function withQuery(
  path: string,
  parameters: Readonly<Record<string, string | undefined>>,
): string {
  let query = '';
  for (const [name, value] of Object.entries(parameters)) {
    if (value === undefined || value === '') continue;
    query += `${query === '' ? '' : '&'}${name}=${encodeURIComponent(value)}`;
  }
  if (query === '') return path;
  return `${path}${path.includes('?') ? '&' : '?'}${query}`;
}
