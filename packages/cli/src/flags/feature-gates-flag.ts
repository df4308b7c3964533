/**
 * `--feature-gates` of programs whose manifests name them: the gates of Kubernetes 1.36, checked in
 * upstream's words, and without effect. A gate that stands otherwise is named in one warning.
 */
import { InvalidArgumentError, Option } from 'commander';
import { changedGates, parseFeatureGates } from '@megaplane/scheduler/configuration/feature-gates';

/** What kube-apiserver and kube-controller-manager know, and kube-scheduler does not. */
const FURTHER: ReadonlySet<string> = new Set(['ControllerManagerReleaseLeaderElectionLockOnExit']);

/** Repeated flags add up. */
export function featureGatesOption(program: string): Option {
  return new Option(
    '--feature-gates <gates>',
    `${program}'s, as Name=true,...; without effect here`,
  )
    .default('')
    .argParser((gates: string, before: string) => {
      const parsed = parseFeatureGates(gates, FURTHER);
      if ('error' in parsed) throw new InvalidArgumentError(parsed.error);
      return `${before},${gates}`;
    });
}

/** What is to be warned of; empty for nothing. */
export function gatesWarning(gates: string): string {
  const parsed = parseFeatureGates(gates, FURTHER);
  const changed = 'error' in parsed ? [] : changedGates(parsed.value);
  return changed.length === 0 ? '' : `--feature-gates: no effect here: ${changed.join(', ')}`;
}
