/** Times as objects have them. */

let lastSecond = NaN;

let lastTimestamp = '';

/** RFC 3339 in whole seconds, as metav1.Time prints. */
export function timestamp(ms: number): string {
  const second = Math.floor(ms / 1000);
  // many writes are of one second
  if (second !== lastSecond) {
    lastTimestamp = `${new Date(second * 1000).toISOString().slice(0, 19)}Z`;
    lastSecond = second;
  }
  return lastTimestamp;
}
