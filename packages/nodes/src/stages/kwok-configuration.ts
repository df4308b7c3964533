/**
 * Options of kwok in a file (`KwokConfiguration`, `config.kwok.x-k8s.io/v1alpha1`): each is the
 * default of a flag. Those that mean nothing here are named in a warning.
 */
import { putMember } from '@megaplane/base/members';
import type { Field } from '../yaml/yaml-fields.ts';
import { readDocuments } from '../yaml/yaml-fields.ts';

export const CONFIGURATION_API_VERSION = 'config.kwok.x-k8s.io/v1alpha1';

/** Values for flags, by the flag's name in camel case. */
export interface KwokDefaults {
  readonly cidr?: string;
  readonly nodeIp?: string;
  readonly nodeName?: string;
  readonly nodePort?: number;
  readonly tlsCertFile?: string;
  readonly tlsPrivateKeyFile?: string;
  readonly manageSingleNode?: string;
  readonly manageAllNodes?: boolean;
  readonly manageNodesWithAnnotationSelector?: string;
  readonly manageNodesWithLabelSelector?: string;
  readonly disregardStatusWithAnnotationSelector?: string;
  readonly disregardStatusWithLabelSelector?: string;
  readonly serverAddress?: string;
  readonly nodeLeaseDurationSeconds?: number;
  readonly enableCrds?: readonly string[];
}

const TEXTS: Readonly<Record<string, keyof KwokDefaults>> = {
  cidr: 'cidr',
  nodeIP: 'nodeIp',
  nodeName: 'nodeName',
  tlsCertFile: 'tlsCertFile',
  tlsPrivateKeyFile: 'tlsPrivateKeyFile',
  manageSingleNode: 'manageSingleNode',
  manageNodesWithAnnotationSelector: 'manageNodesWithAnnotationSelector',
  manageNodesWithLabelSelector: 'manageNodesWithLabelSelector',
  disregardStatusWithAnnotationSelector: 'disregardStatusWithAnnotationSelector',
  disregardStatusWithLabelSelector: 'disregardStatusWithLabelSelector',
  serverAddress: 'serverAddress',
};
/** Numbers and the largest that each may be: those of the flags. */
const NUMBERS: Readonly<Record<string, number>> = {
  nodePort: 65_535,
  nodeLeaseDurationSeconds: 86_400,
};
/** Work is not done by so many goroutines here, and there is nothing to switch on for debugging. */
const MEANINGLESS = [
  ...['podPlayStageParallelism', 'nodePlayStageParallelism', 'nodeLeaseParallelism'],
  ...['podsOnNodeSyncParallelism', 'enablePodsOnNodeSyncListPager'],
  ...['enablePodsOnNodeSyncStreamWatch', 'enablePodCache', 'enableDebuggingHandlers'],
  ...['enableContentionProfiling', 'enableProfilingHandler', 'id', 'tracingEndpoint'],
  ...['tracingSamplingRatePerMillion', 'experimentalEnableCNI', 'enableStageForRefs'],
];

/** The options in a file's text; throws a FileError. */
export function readKwokDefaults(
  file: string,
  text: string,
  warn: (message: string) => void,
): KwokDefaults {
  const found: Record<string, unknown> = {};
  for (const document of readDocuments(file, text)) {
    if (document.kindInside !== 'KwokConfiguration') continue;
    const top = document.members(['apiVersion', 'kind', 'metadata', 'options', 'tracing']);
    readOptions(top('options'), found, warn);
    const tracing = top('tracing').members(['endpoint', 'samplingRatePerMillion']);
    if (!tracing('endpoint').isAbsent)
      warn(tracing('endpoint').error('means nothing here').message);
  }
  return found;
}

function readOptions(
  options: Field,
  found: Record<string, unknown>,
  warn: (message: string) => void,
): void {
  const known = [...Object.keys(TEXTS), ...Object.keys(NUMBERS), 'manageAllNodes', 'enableCRDs'];
  const member = options.members([...known, ...MEANINGLESS]);
  for (const [name, flag] of Object.entries(TEXTS)) {
    if (!member(name).isAbsent) found[flag] = member(name).text();
  }
  for (const [name, max] of Object.entries(NUMBERS)) {
    const field = member(name);
    if (field.isAbsent) continue;
    const value = field.count(0);
    if (value > max) throw field.error(`must lie between 0 and ${max}`);
    putMember(found, name, value);
  }
  if (!member('manageAllNodes').isAbsent) found['manageAllNodes'] = member('manageAllNodes').flag();
  if (!member('enableCRDs').isAbsent) {
    found['enableCrds'] = member('enableCRDs')
      .items()
      .map((item) => item.text());
  }
  for (const name of MEANINGLESS) {
    if (!member(name).isAbsent) warn(member(name).error('means nothing here').message);
  }
}
