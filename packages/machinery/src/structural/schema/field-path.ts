/** Paths in error texts: members after a point, keys and indices in brackets. '' is the root. */

export function child(path: string, name: string): string {
  return path === '' ? name : `${path}.${name}`;
}

/** A key of a map. */
export function childKey(path: string, key: string): string {
  return `${path}[${key}]`;
}

export function item(path: string, index: number): string {
  return `${path}[${index}]`;
}

/** As errors without a path of their own print it. */
export function shownPath(path: string): string {
  return path === '' ? '<nil>' : path;
}
