/** Where text stops being base64, as Go's decoder tells it. */

const LINE_ENDS = '\r\n';
const DIGIT = /[A-Za-z0-9+/]/;

/** The byte at which Go gives up, -1 if it does not: padded, with line ends anywhere. */
export function base64Fault(text: string): number {
  let at = 0;
  const skipLineEnds = (): void => {
    while (at < text.length && LINE_ENDS.includes(text.charAt(at))) at++;
  };
  for (;;) {
    let digits = 0;
    while (digits < 4) {
      if (at === text.length) return digits === 0 ? -1 : at - digits;
      const char = text.charAt(at++);
      if (LINE_ENDS.includes(char)) continue;
      if (DIGIT.test(char)) {
        digits++;
        continue;
      }
      if (char !== '=' || digits < 2) return at - 1;
      if (digits === 2) {
        skipLineEnds();
        if (at === text.length) return at;
        if (text.charAt(at) !== '=') return at - 1;
        at++;
      }
      skipLineEnds();
      return at < text.length ? at : -1;
    }
  }
}
