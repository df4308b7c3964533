/** What of a pod's spec placement depends on as it stands, beside its containers and volumes. */
export const PLACEMENT_MEMBERS = [
  'schedulerName',
  'priority',
  'preemptionPolicy',
  'hostNetwork',
  'hostUsers',
  'overhead',
  'resources',
  'nodeSelector',
  'affinity',
  'tolerations',
  'topologySpreadConstraints',
  'schedulingGates',
  'resourceClaims',
  'schedulingGroup',
] as const;
