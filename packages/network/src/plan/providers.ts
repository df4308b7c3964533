/**
 * What providers of machines do to the IPv6 addresses of a machine, and what follows for a plan.
 *
 * The facts are those of the providers' documents and of machines that ran a million nodes: who
 * answers for addresses that no interface has, and which frames leave a machine at all.
 */

/** How packets to a pod come to its node: asked for by neighbours, or sent by a route. */
export type NodeMode = 'proxy' | 'route';

export interface Provider {
  readonly name: string;
  /** Length of the prefix that a machine gets. */
  readonly given: number;
  /** Length of the prefix that those of all machines of a subnet lie in. */
  readonly subnet: number;
  readonly mode: NodeMode;
  /** What it does, one fact each. */
  readonly facts: readonly string[];
  /** What a person does there, in order. */
  readonly steps: readonly string[];
}

/** A segment of one's own, where all machines see each other's frames. */
export const SHARED: Provider = {
  name: 'shared',
  given: 0,
  subnet: 0,
  mode: 'proxy',
  facts: [
    'All nodes are on one segment; each answers neighbour solicitations for its own pods.',
    'Frames with other MAC addresses than those of the interfaces may be dropped by switches.',
  ],
  steps: ['Give the segment a prefix that holds the base, by a router or by static addresses.'],
};

export const PROVIDERS: ReadonlyMap<string, Provider> = new Map(
  [
    SHARED,
    {
      name: 'routed',
      given: 0,
      subnet: 0,
      mode: 'route' as const,
      facts: ['A router of yours sends the prefix of each node to that node.'],
      steps: ['Add one route for each node, or one that a routing daemon tells.'],
    },
    {
      name: 'vultr',
      given: 64,
      subnet: 0,
      mode: 'route' as const,
      facts: [
        'A machine gets a /64, itself the first address of it, and all of it is routed to it.',
        'Nobody asks for neighbours inside the /64: no entries are needed on the node.',
        'The /64 of machines are not in a row: the plan is a list that the provider keeps.',
      ],
      steps: [
        'Create the machine with IPv6 enabled and read its /64 from its metadata.',
        'Take a prefix for pods inside the /64 that does not hold the address of the machine.',
      ],
    },
    {
      name: 'gcp',
      given: 96,
      subnet: 64,
      mode: 'proxy' as const,
      facts: [
        'A machine gets a /96 of the /64 of its subnet; its own address is one of it, at random.',
        'The gateway asks by neighbour solicitations for each address that it sends to.',
        'The gateway keeps an entry for each pod that it has sent to.',
      ],
      steps: [
        'Make a subnet of IPv6, or of both families, with external or internal access.',
        'Create machines with that stack type and allow IP forwarding (canIpForward).',
        'Read the /96 from the metadata (network-interfaces/0/ipv6s) and use it as --pod-cidr.',
        'Allow the ports of the cluster in the firewall, by the prefix of the subnet.',
      ],
    },
    {
      name: 'aws',
      given: 80,
      subnet: 64,
      mode: 'proxy' as const,
      facts: [
        'A machine gets one /128; a /80 is added to its interface by a call of the API.',
        'The machine has to answer neighbour solicitations for addresses of the /80.',
        'Frames with another MAC address than that of the interface are dropped.',
        'A subnet is a /64: it holds 65,536 prefixes of /80.',
      ],
      steps: [
        'Create a subnet with an IPv6 /64 and reserve a part of it for prefixes.',
        'After the start of a machine: aws ec2 assign-ipv6-addresses --ipv6-prefix-count 1',
        'Turn off the check of source and destination of its interface.',
        'Read the /80 from the metadata and use a /96 of it as --pod-cidr.',
        'Allow the ports of the cluster in the security group, by the prefix of the subnet.',
      ],
    },
  ].map((provider) => [provider.name, provider]),
);
