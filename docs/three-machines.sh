#!/usr/bin/env bash
# A control plane on three machines: nats-server, a store and an API server on each, over TLS.
#
#   three-machines.sh certificates ADDRESS ADDRESS ADDRESS    on one of them, once
#   (copy the directory three-machines/ to the other two)
#   three-machines.sh start 1                                 on each: 1, 2 and 3 in that order
#   three-machines.sh stop
#
# Needs openssl, nats-server and megaplane. kubectl then takes three-machines/kubeconfig of any of them.
set -eu

DIR=${DIR:-$PWD/three-machines}
MEGAPLANE=${MEGAPLANE:-npx megaplane}
NATS_PORT=${NATS_PORT:-4222}
ROUTE_PORT=${ROUTE_PORT:-6222}
STORE_PORT=${STORE_PORT:-2379}
SECURE_PORT=${SECURE_PORT:-6443}

# One authority for journal and stores; the API servers have their own, below api/pki.
certificates() {
  [ $# -eq 3 ] || { echo "three addresses are needed" >&2; exit 2; }
  mkdir -p "$DIR"
  chmod 700 "$DIR"
  cd "$DIR"
  printf '%s\n' "$@" > addresses
  local key=(-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes)
  openssl req -x509 "${key[@]}" -keyout ca.key -out ca.crt -days 3650 -subj /CN=journal 2>/dev/null
  for address in "$@"; do
    printf 'subjectAltName=IP:%s\nextendedKeyUsage=serverAuth,clientAuth\n' "$address" > extensions
    openssl req -new "${key[@]}" -keyout "$address.key" -out request -subj "/CN=$address" 2>/dev/null
    openssl x509 -req -in request -out "$address.crt" -CA ca.crt -CAkey ca.key -CAcreateserial \
      -days 3650 -extfile extensions 2>/dev/null
  done
  rm -f request extensions
  # An API server makes its authority and the key of its tokens: one is started for that.
  $MEGAPLANE apiserver --data-dir api --bind-address 127.0.0.1 --secure-port 0 --durability none \
    > first.log 2>&1 &
  local first=$!
  until grep -q '^ready' first.log; do
    kill -0 $first 2>/dev/null || { cat first.log >&2; exit 1; }
    sleep 0.2
  done
  kill $first
  wait $first || true
  mkdir keys
  mv api/pki keys/pki
  rm -rf api first.log
  mv keys api
  echo "copy $DIR to the other machines, then start each"
}

start() {
  cd "$DIR"
  local number=$1 address servers routes
  address=$(sed -n "${number}p" addresses)
  servers=$(sed "s/\$/:$NATS_PORT/" addresses | paste -sd, -)
  routes=$(sed "s|.*|nats-route://&:$ROUTE_PORT|" addresses | paste -sd, -)
  local tls="cert_file: \"$DIR/$address.crt\", key_file: \"$DIR/$address.key\", ca_file: \"$DIR/ca.crt\""
  mkdir -p "logs-$number"
  cat > "nats-$number.conf" <<NATS
server_name: n$number
listen: "$address:$NATS_PORT"
tls { $tls, verify: true }
jetstream { store_dir: "$DIR/jetstream-$number" }
cluster { name: group, listen: "$address:$ROUTE_PORT", routes: [$routes], tls { $tls } }
NATS
  nats-server -c "nats-$number.conf" > "logs-$number/nats" 2>&1 &
  echo $! >> "pids-$number"
  local journal=(--journal "tls://$servers/group?replicas=3&storage=file" --journal-cacert ca.crt
    --journal-cert "$address.crt" --journal-key "$address.key")
  # They need two of three engines: each is tried until the others are there.
  again "logs-$number/store" $MEGAPLANE store "${journal[@]}" --member-name "m$number" \
    --state-dir "state-$number" --listen-client-urls "https://$address:$STORE_PORT" \
    --advertise-client-urls "https://$address:$STORE_PORT" --client-cert-auth \
    --trusted-ca-file ca.crt --cert-file "$address.crt" --key-file "$address.key" &
  echo $! >> "pids-$number"
  mkdir -p "api-$number"
  [ -d "api-$number/pki" ] || cp -r api/pki "api-$number/pki"
  again "logs-$number/api" $MEGAPLANE apiserver "${journal[@]}" --data-dir "api-$number" \
    --bind-address "$address" --secure-port "$SECURE_PORT" --advertise-address "$address" \
    --etcd-cafile ca.crt --etcd-certfile "$address.crt" --etcd-keyfile "$address.key" &
  echo $! >> "pids-$number"
  until [ -e "api-$number/kubeconfig" ] && grep -q '^ready' "logs-$number/api"; do sleep 0.5; done
  cp "api-$number/kubeconfig" kubeconfig
  chmod 600 kubeconfig
  echo "ready: https://$address:$SECURE_PORT, $DIR/kubeconfig"
}

# Runs a program again whenever it ends, until this is told to.
again() {
  local log=$1 child=0
  shift
  trap 'kill $child 2>/dev/null; wait $child 2>/dev/null; exit 0' TERM INT
  while :; do
    "$@" >> "$log" 2>&1 &
    child=$!
    wait $child || true
    sleep 1
  done
}

stop() {
  cd "$DIR"
  for file in pids-*; do
    tac "$file" | while read -r pid; do kill "$pid" 2>/dev/null || true; done
    rm -f "$file"
  done
}

case ${1:-} in
  certificates | start | stop) "$@" ;;
  *) sed -n '2,9p' "$0"; exit 2 ;;
esac
