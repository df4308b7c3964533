// data plane: all that the dense phases look at
import { ClusterDemand } from './clusters.ts';
import { Kinds } from './kinds.ts';
import { Machines } from './machines.ts';
import { Profiles } from './profiles.ts';
import { Vectors } from './vectors.ts';

export class Tables {
  readonly vectors: Vectors = new Vectors();
  readonly profiles: Profiles = new Profiles();
  readonly kinds: Kinds = new Kinds(this.vectors);
  readonly machines: Machines = new Machines(this.kinds);
  readonly demands: ClusterDemand[] = [];

  demandOf(cluster: string): ClusterDemand {
    const id = this.machines.clusterId(cluster);
    // clusters that have machines and no demand have an entry, too
    for (let next = this.demands.length; next <= id; next++) {
      this.demands.push(new ClusterDemand(next, this.machines.clusterNames[next]!));
    }
    return this.demands[id]!;
  }
}
