// shell: reads the definitions that are part of this package
/** The CustomResourceDefinitions of the fleet, as YAML. */
import { readFileSync } from 'node:fs';

const FILES = ['capacityrequests.yaml', 'upcomingnodes.yaml', 'availablecapacities.yaml'];

/** All three, as one file for `kubectl apply -f -`. */
export function definitionsYaml(): string {
  const texts = FILES.map((name) =>
    readFileSync(new URL(`definitions/${name}`, import.meta.url), 'utf8'),
  );
  return texts.join('---\n');
}
