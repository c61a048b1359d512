graph [
  name "tree"
  node [
    id 0
    label "leaf1"
    type "switch"
  ]
  node [
    id 1
    label "leaf2"
    type "switch"
  ]
  node [
    id 2
    label "spine"
    type "switch"
  ]
  node [
    id 3
    label "h0"
    type "host"
  ]
  node [
    id 4
    label "h1"
    type "host"
  ]
  node [
    id 5
    label "h2"
    type "host"
  ]
  node [
    id 6
    label "h3"
    type "host"
  ]
  edge [
    source 0
    target 3
    capacity "12.5GB/s"
  ]
  edge [
    source 0
    target 4
    capacity "12.5GB/s"
  ]
  edge [
    source 0
    target 2
    capacity "25GB/s"
    count 2
  ]
  edge [
    source 1
    target 5
    capacity "12.5GB/s"
  ]
  edge [
    source 1
    target 6
    capacity "12.5GB/s"
  ]
  edge [
    source 1
    target 2
    capacity "25GB/s"
    count 2
  ]
]
