/**
 * kwok's flags that `megaplane nodes` takes so that manifests keep working, and which of those
 * that say whose nodes are simulated cannot stand together (kwok v0.8, `Config.validate`).
 */
import { type Command, Option } from 'commander';
import { addForeignFlags, flagNames, foreignFlags, foreignWarning } from './foreign-flags.ts';

const FOREIGN: readonly string[] = flagNames(
  'master tracing-endpoint tracing-sampling-rate-per-million',
);

/** Adds those that do nothing here, hidden. */
export function addKwokFlags(command: Command): Command {
  // its value may begin with a dash: -v -4
  command.addOption(new Option('-v, --v <level>').hideHelp());
  return addForeignFlags(command, FOREIGN);
}

/** Names those that were given and do nothing; empty for none. */
export function kwokWarning(command: Command): string {
  return foreignWarning('flags without effect here', foreignFlags(command, ['v', ...FOREIGN]));
}

export interface ManagedFlags {
  readonly manageAllNodes?: boolean;
  readonly manageSingleNode: string;
  readonly manageNodesWithLabelSelector: string;
  readonly manageNodesWithAnnotationSelector: string;
}

/** Why flags and options of files cannot stand together; '' when they can. */
export function managedConflict(flags: ManagedFlags): string {
  const isAll = flags.manageAllNodes === true;
  const selectors = [flags.manageNodesWithLabelSelector, flags.manageNodesWithAnnotationSelector];
  const hasSelector = selectors.some((selector) => selector !== '');
  const bySelector =
    '--manage-nodes-with-annotation-selector or --manage-nodes-with-label-selector';
  if (flags.manageSingleNode !== '') {
    if (isAll) return '--manage-single-node is conflicted with --manage-all-nodes';
    return hasSelector ? `--manage-single-node is conflicted with ${bySelector}` : '';
  }
  return isAll && hasSelector ? `--manage-all-nodes is conflicted with ${bySelector}` : '';
}
