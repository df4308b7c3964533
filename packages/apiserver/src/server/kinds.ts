/** All rules that kinds have beyond the tables, put in force once. */
import { defineDefinitions } from '../apiextensions/controller/definition-rules.ts';
import { defineDevices } from '../registry/groups/devices.ts';
import { defineEviction } from '../registry/core/eviction.ts';
import { defineNamespaces } from '../registry/core/namespaces.ts';
import { defineCertificateRequests } from '../registry/groups/certificate-requests.ts';
import { definePlainKinds } from '../registry/core/plain-kinds.ts';
import { definePodRoutes } from '../kubelet/pod-routes.ts';
import { definePodGroups } from '../registry/core/pod-groups.ts';
import { definePods } from '../registry/core/pods.ts';
import { defineReviews } from '../registry/groups/reviews.ts';
import { defineScales } from '../registry/groups/scale.ts';
import { defineServices } from '../registry/service/services.ts';
import { defineTokens } from '../registry/core/service-account-tokens.ts';

import { defineWorkloads } from '../registry/groups/workloads.ts';

let isDone = false;

/** Registers every kind's rules; later calls do nothing. */
export function defineKinds(): void {
  if (isDone) return;
  isDone = true;
  definePlainKinds();
  defineCertificateRequests();
  defineDevices();
  definePodGroups();
  defineNamespaces();
  definePods();
  defineScales();
  defineEviction();
  defineReviews();
  defineTokens();
  defineServices();
  defineWorkloads();
  definePodRoutes();
  defineDefinitions();
}
