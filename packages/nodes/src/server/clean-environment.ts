// shell: the environment of this process
/**
 * What commands of pods' rules are run with: where programs are found, and what the rule names.
 * What the simulator itself was started with (credentials among it) is none of theirs.
 */
const PATH_DEFAULT = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

export function cleanEnvironment(
  named: Readonly<Record<string, string>> = {},
): Record<string, string> {
  return { PATH: process.env['PATH'] ?? PATH_DEFAULT, ...named };
}
