import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Command, type CommanderError } from 'commander';
import { featureGatesOption, gatesWarning } from './feature-gates-flag.ts';

/** The flag's value, or what is said of it. */
function parsed(...args: readonly string[]): string {
  const command = new Command('x').exitOverride().configureOutput({ writeErr: () => {} });
  command.addOption(featureGatesOption('kube-apiserver'));
  try {
    command.parse(args, { from: 'user' });
  } catch (error) {
    return (error as CommanderError).message;
  }
  return command.opts<{ featureGates: string }>().featureGates;
}

test('gates of Kubernetes are taken, and those that change are named', () => {
  const gates = parsed('--feature-gates', 'GenericWorkload=true', '--feature-gates=kube:PodsAPI=t');
  const warning = '--feature-gates: no effect here: GenericWorkload=true, PodsAPI=true';
  assert.equal(gatesWarning(gates), warning);
  const own = parsed('--feature-gates=ControllerManagerReleaseLeaderElectionLockOnExit=true');
  assert.equal(gatesWarning(own), '');
  assert.equal(gatesWarning(parsed()), '');
});

test('gates that are none, have no value or are locked are refused as upstream does', () => {
  assert.match(parsed('--feature-gates=Foo=true'), /unrecognized feature gate: Foo/);
  assert.match(parsed('--feature-gates=PodsAPI'), /missing bool value for PodsAPI/);
  assert.match(parsed('--feature-gates=PodsAPI=x'), /strconv\.ParseBool: parsing "x"/);
});
