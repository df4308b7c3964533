/** `--runtime-config`: versions of the API that are served though they are not by default. */
import { serveVersion } from '@megaplane/machinery/kinds';

/** Versions that are built, and off unless asked for. */
const OPTIONAL = ['scheduling.k8s.io/v1alpha2'];

/** Puts a list of `group/version=true,...` in force; throws where it cannot be. */
export function applyRuntimeConfig(text: string): void {
  for (const part of text.split(',').map((one) => one.trim())) {
    if (part === '') continue;
    const [version = '', value = 'true'] = part.split('=');
    if (value !== 'true' && value !== 'false') {
      throw new Error(`--runtime-config: invalid value ${version}=${value}; want true or false`);
    }
    if (!OPTIONAL.includes(version)) {
      const known = OPTIONAL.join(', ');
      throw new Error(`--runtime-config: ${version} cannot be chosen here; these can: ${known}`);
    }
    serveVersion(version, value === 'true');
  }
}
