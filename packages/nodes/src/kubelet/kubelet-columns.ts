// data plane: what a simulator remembers of a node, about 50 bytes
/** Columns of the simulated kubelets; rows are those of the informer over Nodes. */
import { Float64Column, Uint16Column, Uint32Column, Uint8Column } from '@megaplane/base/column';
import { networkOf, type PodNetwork } from '../pod/pod-addresses.ts';
import { Ip6Column } from '../columns/ip6-column.ts';
import { IpPairs } from '../pod/pod-ips.ts';
import { Rows } from '../columns/rows.ts';
import { UidColumn } from '../columns/uid-column.ts';

/** Flags of a row. */
export const READY = 2;
/** The lease has to be looked at before it is renewed. */
export const LOOK = 4;

/** The Node says nothing of what it can hold. */
export const NO_CAPACITY = 8;
/** The Node tells another port of its kubelet than ours. */
export const NO_PORT = 16;
/** The Node has no address of type InternalIP. */
export const NO_ADDRESS = 32;
/** The first network of pods is the one of IPv6. */
const SIX_FIRST = 64;
/** The status under way tells a change, and not only that all is as it was. */
export const CHANGED = 128;

export class KubeletColumns extends Rows {
  /** The lease's resourceVersion; 0: not known to exist. */
  readonly leaseVersion: Float64Column = new Float64Column();
  /** When the next renewal is due, and the moment of its period that this is near. */
  readonly plannedMs: Float64Column = new Float64Column();
  readonly turnMs: Float64Column = new Float64Column();
  /** How often the lease has gone from one holder to another; counted with a common holder. */
  readonly transitions: Uint16Column = new Uint16Column();
  readonly failures: Uint8Column = new Uint8Column();
  readonly hosts: IpPairs = new IpPairs();
  /** Networks of its pods; a length of 0: none. Nodes without them take no room. */
  readonly #network: Uint32Column = new Uint32Column();
  readonly #length: Uint8Column = new Uint8Column();
  readonly #network6: Ip6Column = new Ip6Column();
  readonly #length6: Uint8Column = new Uint8Column();
  readonly uid: UidColumn = new UidColumn();

  override reset(id: number): void {
    super.reset(id);
    this.leaseVersion.set(id, 0);
    this.plannedMs.set(id, 0);
    this.turnMs.set(id, 0);
    this.failures.set(id, 0);
    if (this.transitions.get(id) > 0) this.transitions.set(id, 0);
    this.hosts.set(id, []);
    if (this.#length.get(id) > 0) this.#length.set(id, 0);
    if (this.#length6.get(id) > 0) this.#length6.set(id, 0);
  }

  /** Takes the first network of each family; none given: those from before stay. */
  setNetworks(id: number, cidrs: readonly string[]): void {
    const networks = cidrs.flatMap((cidr) => networkOf(cidr) ?? []);
    for (const network of networks.toReversed()) {
      if (network.family === 4) {
        this.#network.set(id, network.base);
        this.#length.set(id, network.length);
      } else {
        this.#network6.set(id, network.base);
        this.#length6.set(id, network.length);
      }
    }
    if (networks.length > 0) this.mark(id, SIX_FIRST, networks[0]?.family === 6);
  }

  /** The networks of the pods of a node, in their order. */
  networksOf(id: number): readonly PodNetwork[] {
    const networks: PodNetwork[] = [];
    const length = this.#length.get(id);
    if (length > 0) networks.push({ family: 4, base: this.#network.get(id), length });
    const length6 = this.#length6.get(id);
    if (length6 > 0) {
      networks.push({ family: 6, base: this.#network6.get(id), length: length6 });
      if (this.has(id, SIX_FIRST)) networks.reverse();
    }
    return networks;
  }
}
