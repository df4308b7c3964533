/** What Services were given and refused, under upstream's names. */
import { LabelledCounter, labelsText } from './labelled-metrics.ts';

export const IPS = 'kube_apiserver_clusterip_allocator';

export const PORTS = 'kube_apiserver_nodeport_allocator';

/** Whether the Service names what it wants. */
type Scope = 'static' | 'dynamic';

/** What Services were given and refused; what is then not written counts, too, as upstream. */
export class AllocationCounts {
  readonly #addresses = new LabelledCounter(`${IPS}_allocation_total`);
  readonly #addressErrors = new LabelledCounter(`${IPS}_allocation_errors_total`);
  readonly #ports = new LabelledCounter(`${PORTS}_allocation_total`);
  readonly #portErrors = new LabelledCounter(`${PORTS}_allocation_errors_total`);

  addressGiven(cidr: string, scope: Scope): void {
    this.#addresses.add(labelsText({ cidr, scope }));
  }

  addressRefused(cidr: string, scope: Scope): void {
    this.#addressErrors.add(labelsText({ cidr, scope }));
  }

  portGiven(scope: Scope): void {
    this.#ports.add(labelsText({ scope }));
  }

  portRefused(scope: Scope): void {
    this.#portErrors.add(labelsText({ scope }));
  }

  print(lines: string[]): void {
    this.#addresses.print(lines);
    this.#addressErrors.print(lines);
    this.#ports.print(lines);
    this.#portErrors.print(lines);
  }
}
