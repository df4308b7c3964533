/** All rules that kinds have beyond the tables, put in force once. */
import { defineDefinitions } from './custom/definition-rules.ts';
import { defineDevices } from './devices.ts';
import { defineEviction } from './eviction.ts';
import { defineNamespaces } from './namespaces.ts';
import { defineCertificateRequests } from './certificate-requests.ts';
import { definePlainKinds } from './plain-kinds.ts';
import { definePodRoutes } from './proxy/pod-routes.ts';
import { definePodGroups } from './pod-groups.ts';
import { definePods } from './pods.ts';
import { defineReviews } from './reviews.ts';
import { defineScales } from './scale.ts';
import { defineServices } from './services.ts';
import { defineTokens } from './service-account-tokens.ts';

import { defineWorkloads } from './workloads.ts';

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
