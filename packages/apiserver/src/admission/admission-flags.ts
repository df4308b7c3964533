// shell: reads files
/** Flags of admission, as kube-apiserver has them. */
import { readFileSync } from 'node:fs';
import { readPluginConfigurations, type PluginConfigurations } from './plugin-configuration.ts';

/** Texts are as given on the command line. */
export interface AdmissionFlags {
  /** Names of plugins by commas. */
  readonly enableAdmissionPlugins?: string;
  readonly disableAdmissionPlugins?: string;
  readonly admissionControlConfigFile?: string;
  readonly defaultNotReadyTolerationSeconds?: number;
  readonly defaultUnreachableTolerationSeconds?: number;
}

const NOT_EVICTED_SECONDS = 300;

/** What the flags say of admission. */
interface AdmissionOptions {
  readonly enabledPlugins: readonly string[];
  readonly disabledPlugins: readonly string[];
  readonly pluginConfigurations?: PluginConfigurations;
  readonly tolerationSeconds: { readonly notReady: number; readonly unreachable: number };
}

/** Throws an Error whose message says what is wrong with a file. */
export function openAdmission(flags: AdmissionFlags): AdmissionOptions {
  const file = flags.admissionControlConfigFile;
  const readFile = (path: string): string => readFileSync(path, 'utf8');
  return {
    enabledPlugins: namesIn(flags.enableAdmissionPlugins),
    disabledPlugins: namesIn(flags.disableAdmissionPlugins),
    ...(file === undefined
      ? {}
      : { pluginConfigurations: readPluginConfigurations(file, readFile) }),
    tolerationSeconds: {
      notReady: flags.defaultNotReadyTolerationSeconds ?? NOT_EVICTED_SECONDS,
      unreachable: flags.defaultUnreachableTolerationSeconds ?? NOT_EVICTED_SECONDS,
    },
  };
}

function namesIn(list = ''): string[] {
  return list.split(',').filter((name) => name !== '');
}
