/** What blang's `semver.Parse` says of text that is no version. */

const ORDINALS = ['Major', 'Minor', 'Patch'] as const;

/** Why `text` is no semantic version. */
export function versionFault(text: string): string {
  if (text === '') return 'Version string empty';
  const [major = '', minor, ...others] = text.split('.');
  if (minor === undefined || others.length === 0) return 'No Major.Minor.Patch elements found';
  const rest = others.join('.');
  const plus = rest.indexOf('+');
  const head = plus < 0 ? rest : rest.slice(0, plus);
  const dash = head.indexOf('-');
  const patch = dash < 0 ? head : head.slice(0, dash);
  for (const [index, part] of [major, minor, patch].entries()) {
    const name = ORDINALS[index] ?? 'Patch';
    if (!/^\d*$/.test(part)) {
      return `Invalid character(s) found in ${name.toLowerCase()} number ${JSON.stringify(part)}`;
    }
    if (/^0\d/.test(part)) {
      return `${name} number must not contain leading zeroes ${JSON.stringify(part)}`;
    }
    if (part === '') return 'strconv.ParseUint: parsing "": invalid syntax';
  }
  const releases = dash < 0 ? [] : head.slice(dash + 1).split('.');
  for (const one of releases) {
    if (one === '') return 'Prerelease is empty';
    if (/^0\d+$/.test(one)) {
      const what = 'Numeric PreRelease version must not contain leading zeroes';
      return `${what} ${JSON.stringify(one)}`;
    }
    if (!/^[0-9A-Za-z-]+$/.test(one)) {
      return `Invalid character(s) found in prerelease ${JSON.stringify(one)}`;
    }
  }
  const builds = plus < 0 ? [] : rest.slice(plus + 1).split('.');
  const wrong = builds.find((one) => !/^[0-9A-Za-z-]+$/.test(one)) ?? '';
  if (wrong === '') return 'Build meta data is empty';
  return `Invalid character(s) found in build meta data ${JSON.stringify(wrong)}`;
}
